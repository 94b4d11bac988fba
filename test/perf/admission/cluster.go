// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/faults/managers"
	"github.com/regatta-sh/regatta/test/install"
	"github.com/regatta-sh/regatta/test/perf/procfs"
	"github.com/regatta-sh/regatta/test/perf/target"
)

// place is the cluster that a measurement gets.
type place struct {
	name  string
	nodes int
	keep  bool
	out   io.Writer
}

// measure brings up a cluster with two managers beside it, and has f measure there. In the end it prints to out what
// memory the managers took.
func (p *place) measure(ctx context.Context, out io.Writer, f func(*local.Cluster, []*managers.Replica) error) (err error) {
	programs, remove, err := install.Temporary(ctx, p.out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	root, err := install.Root()
	if err != nil {
		return err
	}
	cluster, err := local.Up(ctx, local.Options{Name: p.name, Simulated: p.nodes, SchedulerQPS: 1000, Out: p.out})
	if err != nil {
		return err
	}
	if !p.keep {
		defer func() { err = errors.Join(err, local.Down(context.WithoutCancel(ctx), p.name, p.out)) }()
	}
	replicas, balancer, err := managers.Install(ctx, install.Options{Root: root, Programs: programs, Cluster: cluster, Out: p.out}, 2)
	if err != nil {
		return err
	}
	defer balancer.Close()
	if err := f(cluster, replicas); err != nil {
		return err
	}
	return memory(out, cluster)
}

// connected is measure with clients of the cluster.
func (p *place) connected(ctx context.Context, out io.Writer, f func(*rounds, *local.Cluster, []*managers.Replica) error) error {
	return p.measure(ctx, out, func(cluster *local.Cluster, replicas []*managers.Replica) error {
		config, err := cluster.RESTConfig("admin")
		if err != nil {
			return err
		}
		r, err := newRounds(&options{}, config)
		if err != nil {
			return err
		}
		return f(r, cluster, replicas)
	})
}

// memory tells what the managers of a cluster took.
func memory(out io.Writer, cluster *local.Cluster) error {
	pids, err := target.Managers(cluster.State.Dir)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		now, err := procfs.ResidentBytes(pid)
		if err != nil {
			return err
		}
		peak, err := procfs.PeakBytes(pid)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "a manager has %d MiB of memory, and had %d MiB at most\n", now>>20, peak>>20)
	}
	return nil
}
