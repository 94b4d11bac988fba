// SPDX-License-Identifier: Apache-2.0

package shipped

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

func newRollbackCommand() *cobra.Command {
	var w where
	var to string
	var patience time.Duration
	cmd := &cobra.Command{
		Use:   "rollback NAME",
		Short: "Enforce the revision before, or another that is kept",
		Long: `Rollback sets spec.rollbackTo of a bundle to a revision that is kept, the one that
was enforced before unless --to names another, and waits until every replica
enforces it. It stays so whatever the source has, until spec.rollbackTo is taken
away, as promote does.`,
		Example: `  regatta policy rollback change-freeze
  regatta policy rollback change-freeze --to ee4dc1003fa4`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, of, err := w.findBundle(cmd, args[0])
			if err != nil {
				return err
			}
			st := of.GetStatus()
			if to == "" {
				if len(st.History) == 0 {
					return exit.RefusalError(fmt.Errorf("nothing was enforced before of %s", args[0]))
				}
				to = st.History[0].Revision
			}
			a := st.FindArtifact(to)
			if a == nil {
				return exit.UsageError(fmt.Errorf("revision %s is not kept; kept are %s", to, st.KeptRevisions()))
			}
			if err := b.patchSpec(cmd.Context(), args[0], fmt.Sprintf(`{"spec":{"rollbackTo":%q}}`, a.Revision)); err != nil {
				return err
			}
			return b.waitForReplicas(cmd, args[0], patience)
		},
	}
	w.addFlags(cmd)
	cmd.Flags().StringVar(&to, "to", "", "the revision to enforce, or the beginning of it")
	cmd.Flags().DurationVar(&patience, "timeout", time.Minute, "how long to wait until every replica enforces it; 0 not to wait")
	return cmd
}
