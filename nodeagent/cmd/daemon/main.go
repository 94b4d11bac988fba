// SPDX-License-Identifier: Apache-2.0

// Command daemon is kruise-daemon: Regatta's agent on a node.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/regatta-sh/regatta/nodeagent/agent"
)

func main() {
	command, err := newCommand()
	if err == nil {
		err = command.ExecuteContext(ctrl.SetupSignalHandler())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kruise-daemon:", err)
		os.Exit(1)
	}
}

func newCommand() (*cobra.Command, error) {
	o, err := agent.NewOptions()
	if err != nil {
		return nil, err
	}
	command := &cobra.Command{
		Use:           "kruise-daemon",
		Short:         "Restarts containers and pulls images on a node",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Complete(); err != nil {
				return err
			}
			config, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("finding the cluster: %w", err)
			}
			return agent.Run(c.Context(), o, config)
		},
	}
	o.AddFlags(command.Flags())
	return command, nil
}
