// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/test/cluster/local"
)

func downCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove all there is of the cluster, however it was left",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return local.Down(command.Context(), clusterName(command), command.ErrOrStderr())
		},
	}
}
