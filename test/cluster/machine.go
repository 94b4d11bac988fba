// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log"
	"os"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/test/cluster/nodes"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// machineCommand is the first process of a real node.
func machineCommand() *cobra.Command {
	var (
		dir    string
		number int
	)
	command := &cobra.Command{
		Use:    "machine",
		Short:  "Be a node (started by up)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			recorded, err := state.LoadDir(dir)
			if err != nil {
				return err
			}
			return nodes.RunMachine(recorded, number, log.New(os.Stderr, "", log.LstdFlags))
		},
	}
	command.Flags().StringVar(&dir, "dir", "", "directory of the cluster")
	command.Flags().IntVar(&number, "number", 0, "number of the node")
	return command
}
