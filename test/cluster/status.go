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
		Use:   "bin",
		Short: "Print a directory for PATH with kubectl, helm and opa, built if need be",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			cache, err := binaries.CacheDir()
			if err != nil {
				return err
			}
			paths, err := binaries.Ensure(command.Context(), cache, command.ErrOrStderr(), "kubectl", "helm", "opa")
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
