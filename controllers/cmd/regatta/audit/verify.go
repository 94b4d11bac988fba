// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/keys"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/evidence"
)

// verified is what is printed of one archive.
type verified struct {
	Archive string `json:"archive"`
	*evidence.Report
	// Gap tells of decisions that may be missing between the archive and the one that it was named behind.
	Gap string `json:"gap,omitempty"`
	// Failure says what is wrong; empty if nothing is.
	Failure string `json:"failure,omitempty"`
}

func newVerifyCommand() *cobra.Command {
	var trust keys.Trust
	var patience time.Duration
	form := output.New(output.Text, output.JSON)
	cmd := &cobra.Command{
		Use:   "verify ARCHIVE...",
		Short: "Check that evidence is as it was exported, and make its decisions again",
		Long: `Verify checks that each file of an archive is as its manifest says, that its hours are a
chain, and, with --verification-key, that the manifest is signed by a trusted key. Then it
makes each decision again, from the recorded facts, by the recorded policies, without a
cluster. Archives that are named together must follow on one another, in this order.

Where no policy decided, the answer must be the fallback of the point. A decision with
hidden values that has another answer may have it because of these: it is counted, and is
no error. A decision that was made beside a bundle that was withheld or missing cannot be
told from one whose record was changed, and is an error.

What a signature and this show: the holder of the key exported these decisions, they
did not change since, and each follows from its facts by the policies of the archive.
Without a key, a holder of the archive could have made another one. What nothing of this
shows: that the facts were true, or that the log had all decisions.`,
		Example: `  regatta audit verify november.tar.gz --verification-key audit.pub
  regatta audit verify november.tar.gz december.tar.gz --verification-key audit.pub -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			by, err := trust.NewVerification()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), patience, fmt.Errorf("it takes longer than %s; see --timeout", patience))
			defer cancel()
			return verifyArchives(ctx, cmd, args, by, form.String())
		},
	}
	trust.AddFlags(cmd.Flags(), "the archive")
	form.AddTo(cmd)
	cmd.Flags().DurationVar(&patience, "timeout", time.Hour, "how long all archives may take together")
	return cmd
}

// verifyArchives verifies archives and that they follow on one another. It goes on behind one that is wrong, and prints what it found of
// each. Its error is a refusal if one is wrong, whatever else there is.
func verifyArchives(ctx context.Context, cmd *cobra.Command, paths []string, by *bundle.Verification, form string) error {
	all := []verified{}
	var refused, failed []error
	var before *verified
	for _, path := range paths {
		v, err := verifyFile(ctx, cmd.InOrStdin(), path, by)
		if err != nil {
			if exit.Code(err) == exit.Refused {
				refused = append(refused, err)
			} else {
				failed = append(failed, err)
			}
			before = nil
			continue
		}
		if before != nil {
			v.compareWith(before)
		}
		if all = append(all, v); v.Failure != "" {
			refused = append(refused, fmt.Errorf("%s: %s", path, v.Failure))
		}
		before = &v
	}
	if form == output.JSON {
		if err := output.PrintJSON(cmd.OutOrStdout(), all); err != nil {
			return err
		}
	} else {
		for _, v := range all {
			v.printText(cmd.OutOrStdout())
		}
	}
	if len(refused) > 0 {
		return exit.RefusalError(errors.Join(append(refused, failed...)...))
	}
	return errors.Join(failed...)
}

// compareWith notes what is wrong between an archive and the one that it was named behind.
func (v *verified) compareWith(before *verified) {
	if err := v.Manifest.FollowsOn(before.Manifest); err != nil {
		v.Failure = strings.TrimPrefix(v.Failure+fmt.Sprintf("; it does not follow on %s: %v", before.Archive, err), "; ")
	}
	v.Gap = v.Manifest.GapBefore(before.Manifest)
}

func verifyFile(ctx context.Context, in io.Reader, path string, by *bundle.Verification) (verified, error) {
	f, err := openInput(in, path)
	if err != nil {
		return verified{}, fmt.Errorf("reading evidence: %w", err)
	}
	defer f.Close()
	report, err := evidence.VerifyArchive(ctx, f, by)
	if err != nil {
		return verified{}, wrapRefusal(fmt.Errorf("verifying %s: %w", path, err))
	}
	return verified{Archive: path, Report: report, Failure: report.FailureMessage()}, nil
}

func (v verified) printText(out io.Writer) {
	m := v.Manifest
	fmt.Fprintf(out, "%s has %s, %s\n", v.Archive, formatCount(m.CountDecisions(), "decision"), describeTimes(m))
	files := "as the manifest says"
	if v.Signature != nil && v.Signature.Verified {
		files = "as they were exported"
	}
	fmt.Fprintf(out, "  files      %s: %s, %s\n", files, formatCount(len(m.Hours), "hour"), formatCount(len(m.Policies), "bundle"))
	fmt.Fprintf(out, "  chain      %s to %s\n", cmp.Or(shortLink(m.Previous), "its beginning"), cmp.Or(shortLink(m.LastLink()), "its beginning"))
	fmt.Fprintf(out, "  signature  %s\n", describeSignature(v.Signature))
	fmt.Fprintf(out, "  decisions  %d the same when made again", v.Same)
	for _, part := range []struct {
		n    int
		text string
	}{
		{v.Different, "different"}, {v.Unmatched, "of other bundles than their revision says"}, {v.Without, "without their bundles"}, {v.Late, "not made again in time"},
		{v.Fallbacks, "with the fallback of their point"}, {v.Masked, "not to be compared, with hidden values"},
	} {
		if part.n > 0 {
			fmt.Fprintf(out, ", %d %s", part.n, part.text)
		}
	}
	fmt.Fprintln(out)
	if m.LeftOut > 0 {
		fmt.Fprintf(out, "  left out   %s of the log that were no decisions to act on\n", formatCount(m.LeftOut, "line"))
	}
	if v.Gap != "" {
		fmt.Fprintf(out, "  warning    %s\n", v.Gap)
	}
	for _, id := range slices.Sorted(maps.Keys(v.Missing)) {
		fmt.Fprintf(out, "    without %s: %s\n", edit.EscapeText(bundle.ShortID(id)), edit.EscapeText(v.Missing[id]))
	}
	for _, d := range v.Differences {
		fmt.Fprintf(out, "    decision %s, %s of %s: recorded %s, made again %s (other %s)\n", edit.EscapeText(d.Decision), d.Point, edit.EscapeText(describeSubject(d)),
			edit.EscapeText(d.Then.Verdict.Word), edit.EscapeText(d.Now.Verdict.Word), strings.Join(d.Fields, ", "))
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
		return "none: a holder of the archive could have made another one"
	}
	key := edit.EscapeText(decision.TruncateText(s.Algorithm, 100))
	if s.KeyID != "" {
		key += ", key " + edit.EscapeText(decision.TruncateText(s.KeyID, 100))
	}
	if !s.Verified {
		return "not verified, " + key + ": name a key with --verification-key"
	}
	return "valid, " + key
}
