// SPDX-License-Identifier: Apache-2.0

package shipped

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	v1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

func newDiffCommand(load Load) *cobra.Command {
	var w where
	var from, to string
	cmd := &cobra.Command{
		Use:   "diff NAME [PATH]",
		Short: "Show how two revisions of a bundle differ, or one and what is on this machine",
		Long: `Diff shows what the revision that is tried would change of the one that is enforced,
as a unified diff of their files. --from and --to name other revisions that are
kept; a PATH is a folder, a .tar.gz file or a .rego file in place of --to. The signature is left
out.`,
		Example: `  regatta policy diff change-freeze
  regatta policy diff change-freeze ./change-freeze`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to != "" && len(args) == 2 {
				return exit.UsageError(errors.New("compare with a PATH or with --to, not with both"))
			}
			b, of, err := w.findBundle(cmd, args[0])
			if err != nil {
				return err
			}
			st := of.GetStatus()
			with := st.Candidate
			if with == nil && len(args) == 1 && to == "" {
				if from == "" {
					return exit.UsageError(fmt.Errorf("no revision of %s is tried now, so there is nothing to compare with: name a PATH, or with --from a revision that is kept: %s", args[0], st.KeptRevisions()))
				}
				with = st.Active
			}
			old, oldName, err := b.readRevision(cmd, of, from, st.Active)
			if err != nil {
				return err
			}
			var now map[string]string
			nowName := ""
			if len(args) == 2 {
				here, err := load(args[1])
				if err != nil {
					return err
				}
				now, nowName = here.Files, args[1]
			} else if now, nowName, err = b.readRevision(cmd, of, to, with); err != nil {
				return err
			}
			return writeUnifiedDiff(cmd.OutOrStdout(), old, now, oldName, nowName)
		},
	}
	w.addFlags(cmd)
	cmd.Flags().StringVar(&from, "from", "", "the revision to begin with; the enforced one if empty")
	cmd.Flags().StringVar(&to, "to", "", "the revision to end with; the one that is tried if empty, or the enforced one if none is")
	return cmd
}

// readRevision reads the files of a revision, or of the default one if none is named.
func (b *Bundles) readRevision(cmd *cobra.Command, of v1alpha1.AnyPolicyBundle, name string, a *v1alpha1.PolicyArtifact) (map[string]string, string, error) {
	if name != "" {
		if a = of.GetStatus().FindArtifact(name); a == nil {
			return nil, "", exit.UsageError(fmt.Errorf("revision %s is not kept; kept are %s", name, of.GetStatus().KeptRevisions()))
		}
	}
	if a == nil {
		return nil, "nothing", nil
	}
	found, err := b.loadRevision(cmd.Context(), of, a)
	if err != nil {
		return nil, "", err
	}
	return found.Files, a.Revision, nil
}

// writeUnifiedDiff writes what differs, file by file.
func writeUnifiedDiff(out io.Writer, old, now map[string]string, oldName, nowName string) error {
	all := maps.Clone(old)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, now)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		if old[file] == now[file] || strings.HasPrefix(file, ".signatures") {
			continue
		}
		if _, err := io.WriteString(out, udiff.Unified(oldName+"/"+file, nowName+"/"+file, endLine(old[file]), endLine(now[file]))); err != nil {
			return fmt.Errorf("writing the difference: %w", err)
		}
	}
	return nil
}

// endLine ends the last line of a text with a newline, so that a missing one is no difference.
func endLine(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
