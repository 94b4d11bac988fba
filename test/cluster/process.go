// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/test/cluster/local"
)

// processCommand breaks a cluster in part, to see what happens.
func processCommand() *cobra.Command {
	actions := map[string]func(*cobra.Command, *local.Cluster, string) error{
		"kill": func(command *cobra.Command, c *local.Cluster, name string) error {
			return c.Kill(command.Context(), name)
		},
		"start":  func(_ *cobra.Command, c *local.Cluster, name string) error { return c.Start(name) },
		"pause":  func(_ *cobra.Command, c *local.Cluster, name string) error { return c.Pause(name) },
		"resume": func(_ *cobra.Command, c *local.Cluster, name string) error { return c.Resume(name) },
	}
	return &cobra.Command{
		Use:       "process kill|start|pause|resume PROCESS",
		Short:     "End, start or hold a process of the cluster, by its name in status",
		Example:   "  cluster process kill node-1          # pull its plug\n  cluster process pause node-2/kubelet # the node goes silent",
		ValidArgs: []string{"kill", "start", "pause", "resume"},
		Args:      cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			act, ok := actions[args[0]]
			if !ok {
				return fmt.Errorf("%q is none of kill, start, pause and resume", args[0])
			}
			cluster, err := local.Open(clusterName(command))
			if err != nil {
				return err
			}
			return act(command, cluster, args[1])
		},
	}
}
