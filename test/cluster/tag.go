// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/test/cluster/local"
)

func tagCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "tag TAG IMAGE",
		Short: "Point a tag of the cluster's registry to another image",
		Example: `  cluster tag nginx:latest nginx:v2
  cluster tag nginx:stable nginx@sha256:...`,
		Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			cluster, err := local.Open(clusterName(command))
			if err != nil {
				return err
			}
			digest, err := cluster.Tag(command.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s %s\n", args[0], digest)
			return nil
		},
	}
}
