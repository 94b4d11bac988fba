// SPDX-License-Identifier: Apache-2.0

// Command admission measures what protection adds to creating, deleting and
// evicting pods, at the API server: in one cluster, in turn in a namespace that
// is protected and in one that is switched off. See test/perf/README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/faults/budgets"
	"github.com/regatta-sh/regatta/test/faults/managers"
	"github.com/regatta-sh/regatta/test/install"
	"github.com/regatta-sh/regatta/test/perf/procfs"
)

type options struct {
	name    string
	nodes   int
	budgets int
	pods    int
	rounds  int
	clients []int
	keep    bool
	out     io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard()) // without a logger it prints a warning
	o := &options{out: os.Stderr}
	command := &cobra.Command{
		Use: "admission", Short: "Measure what protection adds to requests for pods", Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), c.OutOrStdout()) },
	}
	f := command.Flags()
	f.StringVar(&o.name, "name", "admission", "name of the local cluster that is brought up, and taken down afterwards")
	f.IntVar(&o.nodes, "nodes", 20, "its simulated nodes")
	f.IntVar(&o.budgets, "budgets", 50, "budgets in each of the two namespaces")
	f.IntVar(&o.pods, "pods", 7, "pods of each budget that come and go; one more stays")
	f.IntVar(&o.rounds, "rounds", 3, "how often everything is measured")
	f.IntSliceVar(&o.clients, "clients", []int{1, 10, 50}, "how many send requests at a time")
	f.BoolVar(&o.keep, "keep", false, "leave the cluster up")
	if err := command.ExecuteContext(ctx); err != nil {
		if !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "admission:", err)
		}
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context, out io.Writer) (err error) {
	programs, remove, err := budgets.Programs(ctx, o.out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	root, err := install.Root()
	if err != nil {
		return err
	}
	cluster, err := local.Up(ctx, local.Options{Name: o.name, Simulated: o.nodes, SchedulerQPS: 1000, Out: o.out})
	if err != nil {
		return err
	}
	if !o.keep {
		defer func() { err = errors.Join(err, local.Down(context.WithoutCancel(ctx), o.name, o.out)) }()
	}
	replicas, balancer, err := managers.Install(ctx, install.Options{Root: root, Programs: programs, Cluster: cluster, Out: o.out}, 2)
	if err != nil {
		return err
	}
	defer balancer.Close()
	config, err := cluster.RESTConfig("admin")
	if err != nil {
		return err
	}
	r, err := newRounds(o, config)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := r.run(ctx); err != nil {
		return err
	}
	if o.rounds > 0 {
		table, err := tell(cluster.State.AuditLog(), start, o.clients)
		if err != nil {
			return err
		}
		decided, err := decisions(ctx, replicas)
		if err != nil {
			return err
		}
		fmt.Fprint(out, table, "\n", decided)
	}
	return memory(out)
}

// memory tells what the managers took.
func memory(out io.Writer) error {
	pids, err := procfs.Named("kruise-manager")
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
