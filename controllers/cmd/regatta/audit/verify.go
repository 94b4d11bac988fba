// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/keys"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/evidence"
)

// verified is what is printed of one archive.
type verified struct {
	Archive string `json:"archive"`
	*evidence.Report
	// Failure says what is wrong; empty if nothing is.
	Failure string `json:"failure,omitempty"`
}

func newVerifyCommand() *cobra.Command {
	var trust keys.Trust
	form := output.New(output.Text, output.JSON)
	cmd := &cobra.Command{
		Use:   "verify ARCHIVE...",
		Short: "Check that evidence is as it was exported, and make its decisions again",
		Long: `Verify checks that each file of an archive is as it was exported, that its hours are a
chain, and, with --verification-key, that the archive is signed by a trusted key. Then it
makes each decision again, from the recorded facts, by the recorded policies, without a
cluster. Archives that are named together must follow on one another, in this order.

Not made again are decisions that no policy made, since the answer was a fallback, and
those whose facts were not all known. A decision with hidden values that has another
answer may have it because of these: both are counted, and neither is an error.

What this shows: the holder of the key exported these decisions, nobody changed them
since, and each follows from its facts by the policies of the archive. What it does not
show: that the facts were true, or that the log had all decisions.`,
		Example: `  regatta audit verify november.tar.gz --verification-key audit.pub
  regatta audit verify november.tar.gz december.tar.gz --verification-key audit.pub -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			by, err := trust.NewVerification()
			if err != nil {
				return err
			}
			return verifyArchives(cmd, args, by, form.String())
		},
	}
	trust.AddFlags(cmd.Flags(), "the archive")
	form.AddTo(cmd)
	return cmd
}

// verifyArchives verifies archives and that they follow on one another. It prints what it found of each, also of those before one
// that is wrong.
func verifyArchives(cmd *cobra.Command, paths []string, by *bundle.Verification, form string) error {
	all := []verified{}
	var failed error
	for i, path := range paths {
		v, err := verifyFile(cmd, path, by)
		if err != nil {
			failed = err
			break
		}
		if i > 0 && v.Manifest.Previous != all[i-1].Manifest.LastLink() {
			v.Failure = strings.TrimPrefix(v.Failure+fmt.Sprintf("; it does not follow on %s: an archive is missing between them, or they are not in order", paths[i-1]), "; ")
		}
		all = append(all, v)
		if v.Failure != "" && failed == nil {
			failed = exit.RefusalErrorf("%s: %s", path, v.Failure)
		}
	}
	if form == output.JSON {
		if err := output.PrintJSON(cmd.OutOrStdout(), all); err != nil {
			return err
		}
		return failed
	}
	for _, v := range all {
		v.printText(cmd.OutOrStdout())
	}
	return failed
}

func verifyFile(cmd *cobra.Command, path string, by *bundle.Verification) (verified, error) {
	f, err := openInput(cmd.InOrStdin(), path)
	if err != nil {
		return verified{}, fmt.Errorf("reading evidence: %w", err)
	}
	defer f.Close()
	report, err := evidence.VerifyArchive(cmd.Context(), f, by)
	if err != nil {
		return verified{}, wrapRefusal(fmt.Errorf("verifying %s: %w", path, err))
	}
	return verified{Archive: path, Report: report, Failure: report.FailureMessage()}, nil
}

func (v verified) printText(out io.Writer) {
	m := v.Manifest
	if len(m.Hours) == 0 {
		fmt.Fprintf(out, "%s has no decisions\n", v.Archive)
	} else {
		fmt.Fprintf(out, "%s has %s, between %s and %s UTC\n", v.Archive, formatCount(m.CountDecisions(), "decision"),
			formatTime(m.Hours[0].Start), formatTime(m.Hours[len(m.Hours)-1].Start.Add(time.Hour)))
	}
	fmt.Fprintf(out, "  files      as they were exported: %s, %s\n", formatCount(len(m.Hours), "hour"), formatCount(len(m.Policies), "bundle"))
	fmt.Fprintf(out, "  chain      %s to %s\n", cmp.Or(shortLink(m.Previous), "its beginning"), cmp.Or(shortLink(m.LastLink()), "its beginning"))
	fmt.Fprintf(out, "  signature  %s\n", describeSignature(v.Signature))
	fmt.Fprintf(out, "  decisions  %d the same when made again", v.Same)
	for _, part := range []struct {
		n    int
		text string
	}{
		{v.Different, "different"}, {v.Late, "not made again in time"}, {v.Undecided, "not made by policies"}, {v.Masked, "not to be compared, with hidden values"},
	} {
		if part.n > 0 {
			fmt.Fprintf(out, ", %d %s", part.n, part.text)
		}
	}
	fmt.Fprintln(out)
	for _, id := range slices.Sorted(maps.Keys(v.Without)) {
		fmt.Fprintf(out, "    %s not made again without %s, which the archive does not have\n", formatCount(v.Without[id], "decision"), bundle.ShortID(id))
	}
	for _, d := range v.Differences {
		fmt.Fprintf(out, "    decision %s, %s of %s: recorded %s, made again %s (other %s)\n", d.Decision, d.Point, describeSubject(d),
			d.Then.Verdict.Word, d.Now.Verdict.Word, strings.Join(d.Fields, ", "))
	}
	if n := v.Different - len(v.Differences); n > 0 {
		fmt.Fprintf(out, "    and %d more\n", n)
	}
}

// shortLink is a link as people see it; empty if there is none.
func shortLink(link string) string {
	if link == "" {
		return ""
	}
	return "sha256:" + bundle.ShortRevision(link) + "..."
}

func describeSubject(d *evidence.Difference) string {
	name := d.Subject.Name
	if d.Subject.Namespace != "" {
		name = d.Subject.Namespace + "/" + name
	}
	return strings.TrimSpace(d.Subject.Kind + " " + name)
}

func describeSignature(s *bundle.Signature) string {
	if s == nil {
		return "none: whoever had the archive could make another one"
	}
	key := s.Algorithm
	if s.KeyID != "" {
		key += ", key " + s.KeyID
	}
	if !s.Verified {
		return "not verified, " + key + ": name a key with --verification-key"
	}
	return "valid, " + key
}
