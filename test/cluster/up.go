// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/test/cluster/local"
)

func upCommand() *cobra.Command {
	options := local.Options{}
	command := &cobra.Command{
		Use:   "up",
		Short: "Bring the cluster up, or use the one that runs",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options.Name = clusterName(command)
			options.Out = command.ErrOrStderr()
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding this program: %w", err)
			}
			options.Self = self
			cluster, err := local.Up(command.Context(), options)
			if err != nil {
				return err
			}
			fmt.Fprintf(options.Out, "export KUBECONFIG=%s PATH=%s:$PATH\n", cluster.State.Kubeconfig(), cluster.State.Programs)
			return nil
		},
	}
	flags := command.Flags()
	flags.IntVar(&options.Real, "real", 0, "number of real nodes, which run pods; needs root")
	flags.IntVar(&options.Simulated, "simulated", 0, "number of simulated nodes, which only say that they run pods (3 if there are no real ones)")
	flags.IntVar(&options.Zones, "zones", local.DefaultZones, "number of zones to spread the nodes over")
	flags.StringVar(&options.Kubernetes, "kubernetes", "", "minor version of the control plane and the nodes, such as 1.34; it is compiled first, which takes some minutes (default: the newest)")
	flags.BoolVar(&options.TaintSimulated, "taint-simulated", false, "keep pods without a toleration off simulated nodes")
	flags.BoolVar(&options.StockQPS, "stock-qps", false, "leave the controller manager at its own limit of 20 requests a second and controller")
	flags.IntVar(&options.SchedulerQPS, "scheduler-qps", 0, "pods the scheduler may place in a second (default: its own, 50)")
	flags.StringSliceVar(&options.FeatureGates, "feature-gates", nil, "gates of the API server and of the controller manager, such as MaxUnavailableStatefulSet=true")
	flags.DurationVar(&options.Delay, "delay", 0, "what each request of pods and of the controller manager to the API server takes longer, such as 100ms")
	flags.BoolVar(&options.CSI, "csi", false, "serve volumes by a CSI driver on the real nodes too, with the storage class csi; compiles two more programs")
	flags.StringVar(&options.Kubeconfig, "kubeconfig", "", "a kubeconfig file to add the cluster to; down takes it out again")
	flags.BoolVar(&options.Keep, "keep", false, "do not clean up when the start fails")
	return command
}
