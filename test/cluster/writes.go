// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/test/cluster/audit"
	"github.com/regatta-sh/regatta/test/cluster/local"
)

func writesCommand() *cobra.Command {
	var (
		filter audit.Filter
		since  time.Duration
	)
	command := &cobra.Command{
		Use:   "writes",
		Short: "Count who wrote what to the API server, from its audit log",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			cluster, err := local.Open(clusterName(command))
			if err != nil {
				return err
			}
			if since > 0 {
				filter.Since = time.Now().Add(-since)
			}
			counts, err := audit.Counts(cluster.State.AuditLog(), filter)
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(command.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "USER\tVERB\tRESOURCE\tWRITES\tFAILED")
			for _, one := range counts {
				fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\n", one.User, one.Verb, one.Resource, one.Writes, one.Failed)
			}
			return table.Flush()
		},
	}
	flags := command.Flags()
	flags.StringVar(&filter.User, "user", "", "only this user's")
	flags.StringVar(&filter.Namespace, "namespace", "", "only in this namespace")
	flags.StringVar(&filter.Resource, "resource", "", "only of this resource, with its subresources")
	flags.DurationVar(&since, "since", 0, "only in this time until now")
	return command
}
