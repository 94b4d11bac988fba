// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/regatta-sh/regatta/engine/recovery"
)

// NoRuntimeError says that no container runtime answers, and which endpoints were tried.
type NoRuntimeError struct {
	Endpoints []string
	Err       error
}

// Error implements error.
func (e NoRuntimeError) Error() string {
	return fmt.Sprintf("no container runtime answers by CRI v1 at %s: %v", strings.Join(e.Endpoints, ", "), e.Err)
}

// Unwrap returns the errors of the endpoints.
func (e NoRuntimeError) Unwrap() error { return e.Err }

const (
	// lookAgain is how long a failed search counts: there are many callers, and a missing socket does not
	// appear at once.
	lookAgain = time.Second
	// lookForMore is how long a search counts if another runtime answers.
	lookForMore = 10 * time.Second
	// lookPatience is how long a search for further runtimes may take: a socket may exist without a server.
	lookPatience = 2 * time.Second
)

// Node has the runtimes of a node. It searches for them when they are needed, keeps those that
// answered, and continues to search for the others.
type Node struct {
	endpoints []string
	now       func() time.Time

	looking sync.Mutex // held during a search

	mu     sync.Mutex
	found  map[string]*Runtime // by their endpoints
	failed error
	looked time.Time // when endpoints without a runtime were last tried
}

// NewNode makes a Node whose runtimes listen at some of the endpoints.
func NewNode(endpoints ...string) *Node {
	return &Node{endpoints: endpoints, now: time.Now, found: map[string]*Runtime{}}
}

// ListRuntimes returns all runtimes that answered, at least one, in the order of the endpoints. The first serves
// images.
func (n *Node) ListRuntimes(ctx context.Context) ([]*Runtime, error) {
	all, age, failed := n.knownRuntimes()
	switch {
	case len(all) == len(n.endpoints) || len(all) > 0 && age < lookForMore:
		return all, nil
	case len(all) == 0 && failed != nil && age < lookAgain:
		return nil, failed
	}
	n.findRuntimes(ctx)
	all, _, failed = n.knownRuntimes()
	if len(all) == 0 {
		return nil, failed
	}
	return all, nil
}

// knownRuntimes returns the runtimes that were found, and how long ago the last search was.
func (n *Node) knownRuntimes() (all []*Runtime, age time.Duration, failed error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, endpoint := range n.endpoints {
		if r := n.found[endpoint]; r != nil {
			all = append(all, r)
		}
	}
	return all, n.now().Sub(n.looked), n.failed
}

// findRuntimes tries the endpoints where no runtime was found. No caller waits for it if another runtime answers
// already.
func (n *Node) findRuntimes(ctx context.Context) {
	all, _, _ := n.knownRuntimes()
	if len(all) == 0 {
		n.looking.Lock()
	} else if !n.looking.TryLock() {
		return
	}
	defer n.looking.Unlock()
	all, age, failed := n.knownRuntimes()
	if failed != nil && age < lookAgain { // another caller has searched meanwhile
		return
	}
	if len(all) > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lookPatience)
		defer cancel()
	}
	wrong := make([]error, len(n.endpoints))
	asked := recovery.NewGroup("cri", len(n.endpoints)) // all at once: one that does not answer takes no time from the others
	for i, endpoint := range n.endpoints {
		if slices.ContainsFunc(all, func(r *Runtime) bool { return r.Endpoint == endpoint }) {
			continue
		}
		asked.Go(func() error {
			var r *Runtime
			if r, wrong[i] = Connect(ctx, endpoint); wrong[i] == nil {
				n.mu.Lock()
				n.found[endpoint] = r
				n.mu.Unlock()
			}
			return nil
		})
	}
	panicked := asked.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.looked, n.failed = n.now(), nil
	if err := errors.Join(errors.Join(wrong...), panicked); err != nil {
		n.failed = NoRuntimeError{n.endpoints, err}
	}
}

// ContainerRuntime finds the runtime of a container by its ID in the status of a pod, such as
// containerd://4f1a. Two runtimes may have the same name, so they are asked for the container.
func (n *Node) ContainerRuntime(ctx context.Context, containerID string) (*Runtime, error) {
	name, id, ok := strings.Cut(containerID, "://")
	if !ok {
		return nil, fmt.Errorf("container ID %q names no runtime, want one such as containerd://4f1a", containerID)
	}
	all, err := n.ListRuntimes(ctx)
	if err != nil {
		return nil, err
	}
	best, has := holderOf(ctx, all, name, id)
	if !has && len(all) < len(n.endpoints) { // the container's runtime may have started since
		n.findRuntimes(ctx)
		all, _, _ = n.knownRuntimes()
		best, _ = holderOf(ctx, all, name, id)
	}
	if best == nil {
		return nil, fmt.Errorf("the node has no container runtime %s, only %s", name, strings.Join(runtimeNames(all), ", "))
	}
	return best, nil
}

// holderOf returns the runtime with a name that has a container. If none has it, it returns one that does not answer, so that
// the caller's calls fail, and otherwise the first with the name, since the container may be gone.
func holderOf(ctx context.Context, all []*Runtime, name, id string) (best *Runtime, has bool) {
	var silent *Runtime
	for _, r := range all {
		if r.Name != name {
			continue
		}
		has, err := r.hasContainer(ctx, id)
		switch {
		case has:
			return r, true
		case err != nil && silent == nil:
			silent = r
		case best == nil:
			best = r
		}
	}
	if silent != nil {
		return silent, false
	}
	return best, false
}

// Close ends all connections.
func (n *Node) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var wrong []error
	for _, r := range n.found {
		wrong = append(wrong, r.Close())
	}
	clear(n.found)
	return errors.Join(wrong...)
}

func runtimeNames(all []*Runtime) []string {
	out := make([]string, len(all))
	for i, r := range all {
		out[i] = r.Name
	}
	return out
}
