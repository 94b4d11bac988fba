// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/engine/bundle/lint"
	"github.com/regatta-sh/regatta/engine/module"
)

var errFindings = errors.New("there is something to change")

// invalid is the rule that files break which are no valid bundle.
const invalid = "invalid"

func (c *commands) newLintCommand() *cobra.Command {
	form := output.New(output.Text, output.JSON, output.SARIF, output.GitHub)
	long := "Lint finds what compiles and works, and would be slow with many pods, fail open\nin other tools, or give no reason. Its rules are\n\n"
	for _, r := range lintRules() {
		long += fmt.Sprintf("  %-20s %s\n", r.id, r.text)
	}
	cmd := &cobra.Command{
		Use:   "lint PATH...",
		Short: "Find what would be slow, unsafe or unexplained",
		Long:  long,
		Example: `  regatta policy lint change-freeze
  regatta policy lint policies/* -o sarif > lint.sarif`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			findings := []lint.Finding{}
			for _, path := range paths {
				b, err := loadBundle(path, nil)
				if ps := refusalProblems(path, prefixProblemPaths(path, err)); ps != nil {
					for _, p := range ps {
						findings = append(findings, lint.Finding{Rule: invalid, Problem: p})
					}
					continue
				}
				if err != nil {
					return err
				}
				for _, f := range lint.CheckBundle(b) {
					f.Problem = problemsOf(prefixProblemPaths(path, module.Problems{f.Problem}))[0]
					findings = append(findings, f)
				}
			}
			if err := printFindings(cmd.OutOrStdout(), form.String(), findings); err != nil {
				return err
			}
			if len(findings) > 0 {
				return exit.RefusalError(errFindings)
			}
			return nil
		},
	}
	form.AddTo(cmd)
	return cmd
}

func printFindings(out io.Writer, form string, findings []lint.Finding) error {
	switch form {
	case output.JSON:
		return output.PrintJSON(out, findings)
	case output.SARIF:
		return output.PrintJSON(out, asSARIF(lintRules(), convertFindings(findings)))
	}
	for _, f := range convertFindings(findings) {
		if form == output.GitHub {
			printAnnotation(out, f)
		} else {
			fmt.Fprintf(out, "%s: %s: %s\n", f.SourcePosition(), f.rule, f.Message)
		}
	}
	return nil
}
