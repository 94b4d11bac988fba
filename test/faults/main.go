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
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/regatta-sh/regatta/test/faults/budgets"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard()) // without a logger it prints a warning
	command := &cobra.Command{Use: "faults", Short: "Break things, and check what was promised", SilenceUsage: true, SilenceErrors: true}
	command.AddCommand(budgetsCommand())
	if err := command.ExecuteContext(ctx); err != nil {
		if !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "faults:", err)
		}
		os.Exit(1)
	}
}

func budgetsCommand() *cobra.Command {
	o := budgets.Options{Out: os.Stderr}
	c := &cobra.Command{
		Use: "budgets", Short: "Ask for more than budgets allow, while managers are killed", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			programs, remove, err := budgets.Programs(c.Context(), o.Out)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, remove()) }()
			o.Programs = programs
			report, err := budgets.Run(c.Context(), o)
			if err != nil {
				return err
			}
			fmt.Fprint(c.OutOrStdout(), report)
			return report.Err()
		},
	}
	f := c.Flags()
	f.StringVar(&o.Name, "name", "faults", "name of the local cluster that is brought up, and taken down afterwards")
	f.IntVar(&o.Nodes, "nodes", 40, "its simulated nodes")
	f.IntVar(&o.Replicas, "replicas", 2, "replicas of the manager")
	f.IntVar(&o.Budgets, "budgets", 60, "how many budgets there are")
	f.IntVar(&o.Pods, "pods", 8, "pods of each budget, at least 4")
	f.IntVar(&o.Clients, "clients", 16, "how many ask at a time")
	f.IntVar(&o.Requests, "requests", 100_000, "how many requests they send")
	f.DurationVar(&o.KillEvery, "kill-every", 8*time.Second, "mean time between kills of managers; 0 for none")
	f.Uint64Var(&o.Seed, "seed", 1, "of what is random")
	return c
}
