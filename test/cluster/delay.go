// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log"
	"os"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/test/cluster/delay"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// delayCommand is what up starts for a cluster whose requests take longer.
func delayCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:    "delay",
		Short:  "Lead to the API server by a longer way (started by up)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			recorded, err := state.LoadDir(dir)
			if err != nil {
				return err
			}
			proxy := delay.Proxy{
				Listen: recorded.DelayedAddress(), Target: fmt.Sprintf("%s:%d", recorded.APIServerHost(), recorded.Ports.APIServer),
				RoundTrip: recorded.Delay, Log: log.New(os.Stderr, "", log.LstdFlags),
			}
			return proxy.Serve(command.Context())
		},
	}
	command.Flags().StringVar(&dir, "dir", "", "directory of the cluster")
	return command
}
