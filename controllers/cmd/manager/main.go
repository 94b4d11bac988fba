// SPDX-License-Identifier: Apache-2.0

// Command manager is kruise-manager: the controllers and webhooks of Regatta.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/regatta-sh/regatta/controllers/manager"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
)

func main() {
	if gate.IsChild() { // this program, started again to check a policy bundle within limits
		os.Exit(gate.ServeChild(os.Stdin, os.Stdout, os.Stderr))
	}
	command, err := newCommand()
	if err == nil {
		err = command.ExecuteContext(ctrl.SetupSignalHandler())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kruise-manager:", err)
		os.Exit(1)
	}
}

func newCommand() (*cobra.Command, error) {
	o, err := manager.NewOptions()
	if err != nil {
		return nil, err
	}
	command := &cobra.Command{
		Use:           "kruise-manager",
		Short:         "Runs the workloads of OpenKruise by policies",
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
			return manager.Run(c.Context(), o, config)
		},
	}
	o.AddFlags(command.Flags())
	command.AddCommand(&cobra.Command{
		Use:   "uninstall-check",
		Short: "Fails while workloads exist that an uninstall would delete",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("finding the cluster: %w", err)
			}
			if err := manager.CheckUninstall(c.Context(), config); err != nil {
				return fmt.Errorf("%w; nothing was deleted (helm history and helm rollback bring the release back to use)", err)
			}
			fmt.Println("cluster is clean, ready to delete kruise")
			return nil
		},
	})
	check := &cobra.Command{
		Use:   "upgrade-check",
		Short: "Fails where the flags are wrong, or the API server lacks what a manager needs; takes the flags of the manager",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Complete(); err != nil {
				return err
			}
			config, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("finding the cluster: %w", err)
			}
			if err := manager.CheckUpgrade(c.Context(), config); err != nil {
				return fmt.Errorf("%w; nothing was changed", err)
			}
			fmt.Println("a manager can run here with these flags")
			return nil
		},
	}
	o.AddFlags(check.Flags())
	command.AddCommand(check)
	return command, nil
}
