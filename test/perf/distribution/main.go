// SPDX-License-Identifier: Apache-2.0

// Command distribution measures ResourceDistributions: a Secret and a ConfigMap that go to many namespaces, a change of
// both, and how soon a namespace that comes later has them. See test/perf/README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/regatta-sh/regatta/test/perf/stand"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard()) // without a logger it prints a warning
	d := &distribution{Options: stand.Options{Out: os.Stderr, FeatureGates: "ResourceDistributionGate=true"}}
	command := &cobra.Command{
		Use: "distribution", Short: "Measure ResourceDistributions", Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			return d.Run(c.Context(), func(ctx context.Context, s *stand.Stand) error { return d.measure(ctx, s, c.OutOrStdout()) })
		},
	}
	f := command.Flags()
	d.Flags(f, "perf-distribution", 1)
	f.IntVar(&d.namespaces, "namespaces", 1000, "how many namespaces get a copy of both")
	f.IntVar(&d.later, "later", 20, "how many namespaces come later, one after the other")
	f.IntVar(&d.bytes, "bytes", 1024, "how many bytes of data each of the two has")
	if err := command.ExecuteContext(ctx); err != nil {
		if !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "distribution:", err)
		}
		os.Exit(1)
	}
}
