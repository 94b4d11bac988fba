// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/keys"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/engine/bundle"
)

func (c *commands) newInspectCommand() *cobra.Command {
	var t keys.Trust
	form := output.New(output.Text, output.JSON)
	cmd := &cobra.Command{
		Use:   "inspect BUNDLE",
		Short: "Show what is in a bundle",
		Long: `Inspect shows the revision, the roots, the packages and what they extend or
replace, the signature and the sizes of a bundle: a folder, a .tar.gz file or a
.rego file. With a key the signature is verified.`,
		Example: `  regatta policy inspect change-freeze
  regatta policy inspect bundle.tar.gz --verification-key key.pub -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			by, err := t.NewVerification()
			if err != nil {
				return err
			}
			b, err := loadBundle(args[0], by)
			if err != nil {
				return wrapRefusal(prefixProblemPaths(args[0], err))
			}
			if form.String() == output.JSON {
				return output.PrintJSON(cmd.OutOrStdout(), b.SummarizeContent())
			}
			return printBundleSummary(cmd.OutOrStdout(), b.SummarizeContent())
		},
	}
	t.AddFlags(cmd.Flags(), "the bundle")
	form.AddTo(cmd)
	return cmd
}

func printBundleSummary(out io.Writer, s bundle.Summary) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("Name:", "%s", s.Name)
	if s.Revision != "" {
		row("Revision:", "%s", s.Revision)
	}
	row("Content:", "%s", s.Content)
	if s.Sequence != nil {
		row("Sequence:", "%d", *s.Sequence)
	}
	if len(s.Roots) > 0 {
		row("Roots:", "%s", cmp.Or(strings.Join(s.Roots, ", "), "all of data"))
	}
	row("Signature:", "%s", signatureText(s.Signature))
	row("Size:", "%s in %s, %d of tests", formatCount(s.Size, "byte"), formatCount(len(s.Files), "file"), len(s.Tests))
	fmt.Fprintln(w, "Packages:")
	for _, p := range s.Packages {
		row("  "+p.Name, "%s", packageRole(p))
	}
	fmt.Fprintln(w, "Files:")
	for _, f := range s.Files {
		row("  "+f.Name, "%s", formatCount(f.Size, "byte"))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

func signatureText(s *bundle.Signature) string {
	if s == nil {
		return "none"
	}
	out := s.Algorithm + " over " + formatCount(s.Files, "file")
	if s.KeyID != "" {
		out += ", key " + s.KeyID
	}
	if s.Scope != "" {
		out += ", scope " + s.Scope
	}
	if s.Verified {
		return out + ", verified"
	}
	return out + ", not verified: name a key with --verification-key"
}

func packageRole(p bundle.PackageSummary) string {
	out := "a package for others"
	switch {
	case len(p.Extends) > 0:
		out = "extends with " + strings.Join(p.Extends, ", ")
	case len(p.Overrides) > 0:
		out = "replaces " + strings.Join(p.Overrides, ", ")
	}
	if p.PlatformOnly {
		out += " (platform bundles only)"
	}
	return out
}
