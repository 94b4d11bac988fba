// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/test/cluster/binaries"
	"github.com/regatta-sh/regatta/test/cluster/local"
)

func statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Print what runs and where, as JSON",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			cluster, err := local.Open(clusterName(command))
			if err != nil {
				return err
			}
			encoder := json.NewEncoder(command.OutOrStdout())
			encoder.SetIndent("", "  ")
			return encoder.Encode(cluster.Status(command.Context()))
		},
	}
}

func kubeconfigCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the administrator's kubeconfig",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			cluster, err := local.Open(clusterName(command))
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), cluster.State.Kubeconfig())
			return nil
		},
	}
}

func binCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "bin [PROGRAM...]",
		Short:   "Print a directory for PATH with programs, built if need be: kubectl, helm and opa unless named",
		Example: "  cluster bin\n  KUBEBUILDER_ASSETS=$(cluster bin etcd kube-apiserver kubectl)",
		RunE: func(command *cobra.Command, names []string) error {
			if len(names) == 0 {
				names = []string{"kubectl", "helm", "opa"}
			}

			cache, err := binaries.CacheDir()
			if err != nil {
				return err
			}
			paths, err := binaries.Ensure(command.Context(), cache, command.ErrOrStderr(), names...)
			if err != nil {
				return err
			}
			dir, err := binaries.Link(cache, paths)
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), dir)
			return nil
		},
	}
}
