// SPDX-License-Identifier: Apache-2.0

// Package agents tries whether node agents keep what is promised while they are killed at each
// of their calls, and while the container runtime, registries and nodes fail: on real nodes.
package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/manager"
	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/faults/daemon"
	"github.com/regatta-sh/regatta/test/install"
)

// Options say where it is tried.
type Options struct {
	Name     string            // of the cluster, which is removed afterwards
	Programs map[string]string // of install.Build
	Keep     bool              // leaves the cluster as it is, for a look
	Only     []string          // of Parts; all if empty
	Out      io.Writer
}

// Nodes of the cluster. The first two have agents behind traps, and the third one the managers.
const (
	first    = "node-1"
	second   = "node-2"
	managers = "node-3"
)

const namespace = "faults"

// world is a cluster with agents that can be killed.
type world struct {
	client.Client
	cluster *local.Cluster
	out     io.Writer
	report  *Report

	mu     sync.Mutex
	number int
}

// next numbers objects.
func (w *world) next() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.number++
	return w.number
}

// Run brings up a cluster, tries, and takes it down.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	root, err := install.Root()
	if err != nil {
		return nil, err
	}
	cluster, err := local.Up(ctx, local.Options{Name: o.Name, Real: 3, Out: o.Out})
	if err != nil {
		return nil, err
	}
	if !o.Keep {
		defer func() { err = errors.Join(err, local.Down(context.WithoutCancel(ctx), o.Name, o.Out)) }()
	}
	on := func(what string) string { return what + `.nodeSelector.kubernetes\.io/hostname=` + managers }
	_, err = install.Install(ctx, install.Options{Root: root, Programs: o.Programs, Cluster: cluster, Out: o.Out, Values: []string{
		"--set", "featureGates=ImagePullJobGate=true", "--set", on("manager"), "--set", on("daemon"),
	}})
	if err != nil {
		return nil, err
	}
	config, err := cluster.RESTConfig("admin")
	if err != nil {
		return nil, err
	}
	scheme, err := manager.NewScheme()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	w := &world{Client: c, cluster: cluster, out: o.Out, report: &Report{}}
	if err := client.IgnoreAlreadyExists(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})); err != nil {
		return nil, fmt.Errorf("making the namespace: %w", err)
	}
	if err := daemon.StandIn(ctx, c, first, second); err != nil {
		return nil, err
	}
	var agents []*daemon.Daemon
	for _, node := range []string{first, second} {
		d, err := daemon.New(ctx, cluster, o.Programs["kruise-daemon"], node)
		if err != nil {
			return nil, err
		}
		defer func() { _ = d.Close() }()
		agents = append(agents, d)
	}
	start := time.Now()
	err = w.try(ctx, agents, o.Only)
	for _, d := range agents {
		w.report.Kills += d.Kills
	}
	w.report.Took = time.Since(start)
	return w.report, err
}

// Parts are what can be tried alone.
func Parts() []string {
	return []string{"restarts", "pulls", "envs", "registries", "runtimes", "nodes"}
}

// try does one thing after the other. The two nodes work at the same time.
func (w *world) try(ctx context.Context, agents []*daemon.Daemon, only []string) error {
	wanted := func(part string) bool { return len(only) == 0 || slices.Contains(only, part) }
	for i, kind := range []kind{restarts{}, pulls{}, envs{}} {
		if !wanted(Parts()[i]) {
			continue
		}
		if err := w.kills(ctx, kind, agents); err != nil {
			return fmt.Errorf("killing agents in %s: %w", kind.name(), err)
		}
	}
	var all sync.WaitGroup
	wrong := make([]error, 3)
	part := func(i int, name string, f func(context.Context, *daemon.Daemon) error, d *daemon.Daemon) {
		if !wanted(name) {
			return
		}
		w.say("%s on %s", name, d.Node)
		if wrong[i] = f(ctx, d); wrong[i] != nil {
			wrong[i] = fmt.Errorf("trying %s: %w", name, wrong[i])
		}
	}
	all.Go(func() { part(0, "registries", w.registries, agents[0]) })
	all.Go(func() {
		part(1, "runtimes", w.runtimes, agents[1])
		part(2, "nodes", w.nodes, agents[1])
	})
	all.Wait()
	return errors.Join(wrong...)
}

// say prints what happens at the moment.
func (w *world) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.out, format+"\n", args...)
}

func (w *world) note(broken, in string, took time.Duration, became, wrong string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.note(broken, in, took, became, wrong)
}

func (w *world) blame(broken, in, wrong string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.blame(broken, in, wrong)
}

// expect gives what will break its place in the table.
func (w *world) expect(broken, in string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.row(broken, in)
}

// until waits until a look says that it is so. The state that it saw last is in the error.
func until(ctx context.Context, limit time.Duration, look func(context.Context) (done bool, state string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	last := ""
	for {
		done, state, err := look(ctx)
		switch {
		case err == nil && done:
			return nil
		case err == nil:
			last = state
		case ctx.Err() == nil:
			return err
		}
		select {
		case <-ctx.Done():
			return stuckError{after: limit, state: last}
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// stuckError says that something did not come to its end.
type stuckError struct {
	after time.Duration
	state string
}

// Error implements error.
func (e stuckError) Error() string { return fmt.Sprintf("after %s it is still: %s", e.after, e.state) }
