// SPDX-License-Identifier: Apache-2.0

// Package rollout has the commands about rollouts: to follow one, to stop it and let it go on, to go back to an earlier
// revision, to approve a revision and to restart pods.
package rollout

import (
	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
)

// NewCommand makes the command with its subcommands. preview simulates a rollout for the flag
// --preview; without it the commands do not have the flag.
func NewCommand(preview edit.Preview) *cobra.Command {
	cmd := &cobra.Command{Use: "rollout", Short: "Follow, stop, undo, approve and start rollouts"}
	for _, below := range []*cobra.Command{
		watchCommand(), statusCommand(), historyCommand(), undoCommand(preview), abortCommand(preview),
		pauseCommand(), resumeCommand(), restartCommand(preview), approveCommand(observation),
	} {
		cmd.AddCommand(escapeErrors(below))
	}
	return cmd
}
