// SPDX-License-Identifier: Apache-2.0

// Command cluster runs a Kubernetes cluster on this machine, for tests and
// demonstrations, without a container engine. See README.md.
package main

import (
	"context"
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
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "cluster",
		Short: "A Kubernetes cluster on this machine, for tests and demonstrations",
		// An error of the cluster is not a wrong use of the command.
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().String("name", local.DefaultName, "name of the cluster; several can run at once")
	root.AddCommand(upCommand(), downCommand(), statusCommand(), kubeconfigCommand(), binCommand(), loadCommand(), tagCommand(), processCommand(), writesCommand())
	root.AddCommand(serveCommand(), delayCommand(), machineCommand(), csiCommand())
	return root
}

func clusterName(command *cobra.Command) string {
	return command.Flag("name").Value.String()
}
