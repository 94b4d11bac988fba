// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/test/cluster/images"
	"github.com/regatta-sh/regatta/test/cluster/local"
)

func loadCommand() *cobra.Command {
	options := images.Options{}
	var entrypoint string
	command := &cobra.Command{
		Use:   "load IMAGE=PROGRAM[,PROGRAM...]...",
		Short: "Make images of programs and push them to the cluster's registry",
		Example: `  cluster load openkruise/kruise-manager:v0.1.0=bin/manager
  cluster load --entrypoint '/daemon --verbose' openkruise/kruise-daemon:v0.1.0=bin/daemon,bin/pause`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			cluster, err := local.Open(clusterName(command))
			if err != nil {
				return err
			}
			options.Entrypoint = strings.Fields(entrypoint)
			for _, arg := range args {
				image, programs, ok := strings.Cut(arg, "=")
				if !ok {
					return fmt.Errorf("%q is not of the form IMAGE=PROGRAM[,PROGRAM...]", arg)
				}
				digest, err := cluster.Load(command.Context(), image, strings.Split(programs, ","), options)
				if err != nil {
					return err
				}
				fmt.Fprintf(command.OutOrStdout(), "%s %s\n", image, digest)
			}
			return nil
		},
	}
	command.Flags().StringVar(&entrypoint, "entrypoint", "", "what the image runs, and its arguments (default: the first program)")
	command.Flags().StringVar(&options.User, "user", "", "the user it runs as, a number or a name (default: root)")
	return command
}
