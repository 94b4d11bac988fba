// SPDX-License-Identifier: Apache-2.0

// Command nodes measures what the manager does about nodes: an ImagePullJob over all of them, many
// ContainerRecreateRequests at once, and the probes of PodProbeMarkers. The nodes are simulated, and so are their agents, but for
// the command agent, which measures a real one;
// see test/perf/agents and test/perf/README.md.
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
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/regatta-sh/regatta/test/perf/agents"
	"github.com/regatta-sh/regatta/test/perf/stand"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard()) // without a logger it prints a warning
	klog.LogToStderr(true)
	command := &cobra.Command{Use: "nodes", Short: "Measure what the manager does about nodes", SilenceUsage: true, SilenceErrors: true}
	command.AddCommand(imagesCommand(), restartsCommand(), probesCommand(), agentCommand())
	if err := command.ExecuteContext(ctx); err != nil {
		if !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "nodes:", err)
		}
		os.Exit(1)
	}
}

// with starts agents on a stand, has f measure, and ends them.
func with(ctx context.Context, s *stand.Stand, o agents.Options, f func(context.Context, *agents.Agents) error) error {
	running, stop := context.WithCancel(ctx)
	a, err := agents.Start(running, s.Target.Config, o)
	if err != nil {
		stop()
		return err
	}
	err = f(ctx, a)
	stop()
	if ended := a.Wait(); err == nil {
		err = ended
	}
	return err
}

// perThing is a number of writes for each of so many things.
func perThing(writes, things int) string { return fmt.Sprintf("%.2f", float64(writes)/float64(things)) }

// second is a flag of seconds.
const second = time.Second
