// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log"
	"os"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/test/cluster/csi"
	"github.com/regatta-sh/regatta/test/cluster/csi/sidecars"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// csiCommand is what up starts for volumes of a CSI driver: once beside the control
// plane, and once on each real node.
func csiCommand() *cobra.Command {
	var dir, node, kubelet string
	command := &cobra.Command{
		Use:    "csi",
		Short:  "Serve volumes that grow, as a CSI driver (started by up)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			recorded, err := state.LoadDir(dir)
			if err != nil {
				return err
			}
			logger := log.New(os.Stderr, "", log.LstdFlags)
			if node == "" {
				return csi.ServeController(command.Context(), sidecars.Volumes(recorded), sidecars.Socket(recorded), logger)
			}
			return csi.ServeNode(command.Context(), sidecars.Volumes(recorded), node, kubelet, logger)
		},
	}
	command.Flags().StringVar(&dir, "dir", "", "directory of the cluster")
	command.Flags().StringVar(&node, "node", "", "name of the node to mount volumes on; without it, volumes are made and grown")
	command.Flags().StringVar(&kubelet, "kubelet", "", "directory of the node's kubelet")
	return command
}
