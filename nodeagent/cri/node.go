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
)

// NoRuntimeError says that no container runtime answers, and where it was looked for.
type NoRuntimeError struct {
	Endpoints []string
	Err       error
}

// Error implements error.
func (e NoRuntimeError) Error() string {
	return fmt.Sprintf("no container runtime answers by CRI v1 at %s: %v", strings.Join(e.Endpoints, ", "), e.Err)
}

// Unwrap returns what each endpoint said.
func (e NoRuntimeError) Unwrap() error { return e.Err }

// lookAgain is how long a failed look counts: callers are many, and a socket that is
// missing is not there a moment later.
const lookAgain = time.Second

// Node is the runtimes of a node. It looks for them when they are asked for, and keeps
// all that answered.
type Node struct {
	endpoints []string
	now       func() time.Time

	mu     sync.Mutex
	found  []*Runtime // in the order of the endpoints
	failed error
	until  time.Time // failed counts until then
}

// NewNode makes a Node with runtimes at some of the endpoints.
func NewNode(endpoints ...string) *Node { return &Node{endpoints: endpoints, now: time.Now} }

// Runtimes are all that answered, at least one. The first serves images.
func (n *Node) Runtimes(ctx context.Context) ([]*Runtime, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.found) > 0 {
		return n.found, nil
	}
	if n.failed != nil && n.now().Before(n.until) {
		return nil, n.failed
	}
	var wrong []error
	for _, endpoint := range n.endpoints {
		r, err := Connect(ctx, endpoint)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		n.found = append(n.found, r)
	}
	if len(n.found) == 0 {
		n.failed, n.until = NoRuntimeError{n.endpoints, errors.Join(wrong...)}, n.now().Add(lookAgain)
		return nil, n.failed
	}
	n.failed = nil
	return n.found, nil
}

// Of finds the runtime of a container by its ID as pods have it, such as
// containerd://4f1a.
func (n *Node) Of(ctx context.Context, containerID string) (*Runtime, error) {
	name, _, ok := strings.Cut(containerID, "://")
	if !ok {
		return nil, fmt.Errorf("container ID %q names no runtime, want one such as containerd://4f1a", containerID)
	}
	all, err := n.Runtimes(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(r *Runtime) bool { return r.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("the node has no container runtime %s, only %s", name, strings.Join(names(all), ", "))
	}
	return all[i], nil
}

// Close ends all connections.
func (n *Node) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var wrong []error
	for _, r := range n.found {
		wrong = append(wrong, r.Close())
	}
	n.found = nil
	return errors.Join(wrong...)
}

func names(all []*Runtime) []string {
	out := make([]string, len(all))
	for i, r := range all {
		out[i] = r.Name
	}
	return out
}
