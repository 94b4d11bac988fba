// SPDX-License-Identifier: Apache-2.0

// Command faults breaks things on purpose and checks what was promised for that
// case. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/regatta-sh/regatta/test/faults/agents"
	"github.com/regatta-sh/regatta/test/faults/budgets"
	"github.com/regatta-sh/regatta/test/faults/injection"
	"github.com/regatta-sh/regatta/test/faults/spreads"
	"github.com/regatta-sh/regatta/test/faults/tenants"
	"github.com/regatta-sh/regatta/test/install"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard()) // without a logger it prints a warning
	klog.SetLogger(logr.Discard()) // connections of programs that are killed break
	command := &cobra.Command{Use: "faults", Short: "Break things, and check what was promised", SilenceUsage: true, SilenceErrors: true}
	command.AddCommand(budgetsCommand(), injectionCommand(), agentsCommand(), spreadsCommand(), tenantsCommand())
	if err := command.ExecuteContext(ctx); err != nil {
		if !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "faults:", err)
		}
		os.Exit(1)
	}
}

// reporter is what came out of a trial.
type reporter interface {
	comparable
	fmt.Stringer
	Err() error
}

// trial builds what is tried, tries, and prints what came out. An error is that something was not as promised.
func trial[R reporter](c *cobra.Command, try func(programs map[string]string) (R, error)) (err error) {
	programs, remove, err := install.Temporary(c.Context(), os.Stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	var none R
	report, err := try(programs)
	if report == none {
		return err
	}
	fmt.Fprint(c.OutOrStdout(), report)
	return errors.Join(err, report.Err())
}

func budgetsCommand() *cobra.Command {
	o := budgets.Options{Out: os.Stderr}
	c := &cobra.Command{
		Use: "budgets", Short: "Ask for more than budgets allow, while managers are killed", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return trial(c, func(programs map[string]string) (*budgets.Report, error) {
				o.Programs = programs
				return budgets.Run(c.Context(), o)
			})
		},
	}
	f := c.Flags()
	clusterFlags(f, &o.Name, &o.Nodes, 40, &o.Replicas, &o.Seed)
	f.IntVar(&o.Budgets, "budgets", 60, "how many budgets there are")
	f.IntVar(&o.Pods, "pods", 8, "pods of each budget, at least 4")
	f.IntVar(&o.Clients, "clients", 16, "how many ask at a time")
	f.IntVar(&o.Requests, "requests", 100_000, "how many requests they send")
	f.DurationVar(&o.KillEvery, "kill-every", 8*time.Second, "mean time between kills of managers; 0 for none")
	return c
}

// table is a report that may be printed as Markdown.
type table struct {
	*agents.Report
	markdown bool
}

func (t table) String() string {
	if t.markdown {
		return t.Markdown()
	}
	return t.Report.String()
}

func agentsCommand() *cobra.Command {
	o := agents.Options{Out: os.Stderr}
	markdown := false
	c := &cobra.Command{
		Use: "agents", Short: "Kill node agents at each of their calls, and break what they work with", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return trial(c, func(programs map[string]string) (table, error) {
				o.Programs = programs
				report, err := agents.Run(c.Context(), o)
				if report == nil {
					return table{}, err
				}
				return table{report, markdown}, err
			})
		},
	}
	c.Flags().StringVar(&o.Name, "name", "faults", "name of the local cluster that is brought up, and taken down afterwards")
	c.Flags().StringSliceVar(&o.Only, "only", nil, "try these parts only, of "+strings.Join(agents.Parts(), ", "))
	c.Flags().BoolVar(&o.Keep, "keep", false, "leave the cluster, for a look")
	c.Flags().BoolVar(&markdown, "markdown", false, "print the table as Markdown")
	return c
}

func injectionCommand() *cobra.Command {
	o := injection.Options{Out: os.Stderr}
	c := &cobra.Command{
		Use: "injection", Short: "Create pods while their SidecarSets change and managers are killed", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return trial(c, func(programs map[string]string) (*injection.Report, error) {
				o.Programs = programs
				return injection.Run(c.Context(), o)
			})
		},
	}
	f := c.Flags()
	clusterFlags(f, &o.Name, &o.Nodes, 10, &o.Replicas, &o.Seed)
	f.IntVar(&o.Groups, "groups", 2, "groups of pods, each with four SidecarSets")
	f.IntVar(&o.Pods, "pods", 5000, "how many pods are created")
	f.DurationVar(&o.For, "for", 0, "end after that time, however many pods there are; 0 for no limit")
	f.IntVar(&o.Clients, "clients", 8, "how many create pods at a time")
	f.IntVar(&o.Keep, "keep", 12, "how many pods of each client there are at a time")
	f.DurationVar(&o.ChangeEvery, "change-every", 500*time.Millisecond, "time between changes of SidecarSets")
	f.DurationVar(&o.KillEvery, "kill-every", 8*time.Second, "mean time between kills of one manager; 0 for none")
	f.DurationVar(&o.Late, "late", 5*time.Second, "how long after its end a version may still be injected, by a cache that is behind")
	return c
}

func spreadsCommand() *cobra.Command {
	o := spreads.Options{Out: os.Stderr}
	c := &cobra.Command{
		Use: "spreads", Short: "Create and delete many pods of a WorkloadSpread at once, while managers are killed", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return trial(c, func(programs map[string]string) (*spreads.Report, error) {
				o.Programs = programs
				return spreads.Run(c.Context(), o)
			})
		},
	}
	f := c.Flags()
	clusterFlags(f, &o.Name, &o.Nodes, 1, &o.Replicas, &o.Seed)
	f.IntVar(&o.Pods, "pods", 50, "how many pods there are after each round, each created by a client of its own at once")
	f.IntVar(&o.Rounds, "rounds", 50, "how often half of them are deleted at once, and created again; a manager is killed in each round")
	return c
}

func tenantsCommand() *cobra.Command {
	o := tenants.Options{Out: os.Stderr}
	c := &cobra.Command{
		Use: "tenants", Short: "Give many namespaces policies of their own, and measure the memory of the manager in its container", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return trial(c, func(programs map[string]string) (*tenants.Report, error) {
				o.Programs = programs
				return tenants.Run(c.Context(), o)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&o.Name, "name", "faults", "name of the local cluster that is brought up, and taken down afterwards")
	f.IntVar(&o.Namespaces, "namespaces", 500, "how many namespaces there are, each with a PolicyBundle")
	f.IntVar(&o.Decisions, "decisions", 12_000, "how many decisions are asked for, before and after the policies of the platform change")
	f.IntVar(&o.Clients, "clients", 8, "how many ask at a time")
	return c
}

// clusterFlags are those that all trials have.
func clusterFlags(f *pflag.FlagSet, name *string, nodes *int, ordinary int, replicas *int, seed *uint64) {
	f.StringVar(name, "name", "faults", "name of the local cluster that is brought up, and taken down afterwards")
	f.IntVar(nodes, "nodes", ordinary, "its simulated nodes")
	f.IntVar(replicas, "replicas", 2, "replicas of the manager")
	f.Uint64Var(seed, "seed", 1, "of what is random")
}
