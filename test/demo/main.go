// SPDX-License-Identifier: Apache-2.0

// Command demo shows Regatta at work on a cluster that it brings up itself, or
// on the one that a flag names. It types what a user would type.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/test/cluster/local"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := options{}
	command := &cobra.Command{
		Use: "demo", Short: "Show Regatta at work", Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return run(c.Context(), o)
		},
	}
	f := command.Flags()
	f.StringVar(&o.name, "name", "demo", "name of the local cluster")
	f.IntVar(&o.real, "real", 0, "number of real nodes (3 for root, unless --simulated)")
	f.IntVar(&o.simulated, "simulated", 0, "number of simulated nodes (6 for others)")
	f.StringVar(&o.kubernetes, "kubernetes", "", "minor version of Kubernetes, such as 1.34, which is compiled first (default: the newest)")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "use the cluster of this kubeconfig instead")
	f.StringVar(&o.image, "image", "", "image of the manager with its tag, for --kubeconfig: the cluster has to find it")
	f.BoolVar(&o.installed, "installed", false, "with --kubeconfig: Regatta is there already")
	f.StringVar(&o.endpoint, "endpoint", "", "with --installed: where a manager outside of the cluster explains decisions")
	down := &cobra.Command{
		Use: "down", Short: "Remove the local cluster", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return local.Down(c.Context(), o.name, os.Stderr) },
	}
	down.Flags().StringVar(&o.name, "name", "demo", "name of the local cluster")
	command.AddCommand(down)
	if err := command.ExecuteContext(ctx); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
