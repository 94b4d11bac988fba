// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/regatta-sh/regatta/test/cluster/process"
)

// The processes of a cluster can be ended, started and held, for tests of what
// happens then. Their names are those of Status: kube-apiserver, etcd, kwok,
// node-1 (the whole machine), node-1/kubelet and so on.

// Kill ends a process at once, and returns when it is gone. The programs of a
// node come back by themselves after a second; node-1 and those on the host do
// not.
func (c *Cluster) Kill(ctx context.Context, name string) error {
	pids, err := c.pids(name)
	if err != nil {
		return err
	}
	// Those that run now, not those that take their place.
	return process.Kill(ctx, c.State.Dir, func(running process.Running) bool {
		return slices.Contains(pids, running.PID)
	})
}

// Start starts a process that was ended: one of the host's, or a machine.
func (c *Cluster) Start(name string) error {
	running, err := process.Find(c.State.Dir)
	if err != nil {
		return err
	}
	if process.Names(running)[name] {
		return fmt.Errorf("%s runs already", name)
	}
	for _, spec := range c.State.Processes {
		if spec.Name == name {
			_, err := process.Start(c.State.Dir, spec)
			return err
		}
	}
	return fmt.Errorf("there is no process %q to start in the cluster %q", name, c.State.Name)
}

// Pause holds a process: it keeps its connections and answers nothing, like a
// machine that swaps.
func (c *Cluster) Pause(name string) error { return c.signal(name, syscall.SIGSTOP) }

// Resume lets a process that was held go on.
func (c *Cluster) Resume(name string) error { return c.signal(name, syscall.SIGCONT) }

func (c *Cluster) signal(name string, signal syscall.Signal) error {
	pids, err := c.pids(name)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, signal); err != nil {
			return fmt.Errorf("signalling %s: %w", name, err)
		}
	}
	return nil
}

// pids finds the processes of one name, without what they have started.
func (c *Cluster) pids(name string) ([]int, error) {
	all, err := process.Find(c.State.Dir)
	if err != nil {
		return nil, err
	}
	var found []int
	for _, running := range all {
		if running.Name == name && !strings.HasPrefix(running.Executable, "containerd-shim") {
			found = append(found, running.PID)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no process %q runs in the cluster %q", name, c.State.Name)
	}
	return found, nil
}
