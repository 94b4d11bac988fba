// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/engine/decision"
)

// FetchRecords asks all managers of the cluster for their records, for a command, and prints warnings about those that did not answer.
func (c *Cluster) FetchRecords(cmd *cobra.Command, flags managers.Flags, about managers.Decisions) ([]decision.Record, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	asker, err := managers.New(config, flags)
	if err != nil {
		return nil, err
	}
	records, warnings, err := asker.FetchDecisions(cmd.Context(), about)
	for _, w := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
	}
	return records, err
}
