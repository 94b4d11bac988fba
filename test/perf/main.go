// SPDX-License-Identifier: Apache-2.0

// Command perf times the creation, the in-place update, the recreation and the
// deletion of pods by workloads, counts what that costs, and does the same with
// native ones for comparison. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := &options{out: os.Stderr}
	command := &cobra.Command{
		Use: "perf", Short: "Measure what workloads cost", Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return run(c.Context(), o, c.OutOrStdout())
		},
	}
	o.add(command.Flags())
	if err := command.ExecuteContext(ctx); err != nil {
		if !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "perf:", err)
		}
		os.Exit(1)
	}
}
