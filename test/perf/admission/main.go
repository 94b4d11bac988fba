// SPDX-License-Identifier: Apache-2.0

// Command admission measures what protection adds to creating, deleting and
// evicting pods, at the API server: in one cluster, in turn in a namespace that
// is protected and in one that is switched off. Its subcommand injection measures
// what SidecarSets add to creating pods, and sidecars what many of them cost. See test/perf/README.md.
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

	"github.com/regatta-sh/regatta/test/perf/stand"
)

type options struct {
	place
	budgets int
	pods    int
	rounds  int
	clients []int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard()) // without a logger it prints a warning
	o := &options{place: place{stand.Options{SchedulerQPS: 1000, Out: os.Stderr}}}
	command := &cobra.Command{
		Use: "admission", Short: "Measure what protection adds to requests for pods", Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), c.OutOrStdout()) },
	}
	o.flags(command.PersistentFlags())
	f := command.Flags()
	f.IntVar(&o.budgets, "budgets", 50, "budgets in each of the two namespaces")
	f.IntVar(&o.pods, "pods", 7, "pods of each budget that come and go; one more stays")
	f.IntVar(&o.rounds, "rounds", 3, "how often everything is measured")
	f.IntSliceVar(&o.clients, "clients", []int{1, 10, 50}, "how many send requests at a time")
	command.AddCommand(injectionCommand(&o.place), sidecarsCommand(&o.place))
	if err := command.ExecuteContext(ctx); err != nil {
		if !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "admission:", err)
		}
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	return o.measure(ctx, out, func(ctx context.Context, s *stand.Stand) error {
		start := time.Now()
		if err := (&rounds{options: o, stand: s}).run(ctx); err != nil {
			return err
		}
		if o.rounds == 0 {
			return nil
		}
		table, err := tell(s.Target.AuditLog, start, o.clients)
		if err != nil {
			return err
		}
		decided, err := decisions(ctx, s.Target.Metrics, "protection/budget", "budgets")
		if err != nil {
			return err
		}
		fmt.Fprint(out, table, "\n", decided)
		return nil
	})
}
