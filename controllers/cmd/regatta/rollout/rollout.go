// SPDX-License-Identifier: Apache-2.0

// Package rollout has the commands about rollouts: to follow one, and to restart pods in place.
package rollout

import "github.com/spf13/cobra"

// NewCommand makes the command with its subcommands.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "rollout", Short: "Follow and start rollouts"}
	cmd.AddCommand(watchCommand(), restartCommand())
	return cmd
}
