// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/engine/bundle/lint"
	"github.com/regatta-sh/regatta/engine/bundle/lint/deep"
	"github.com/regatta-sh/regatta/engine/module"
)

var errFindings = errors.New("there is something to change")

// invalid is the rule that files break which are no valid bundle.
const invalid = "invalid"

// linting is one run of the command lint.
type linting struct {
	deep    bool
	timeout time.Duration
	form    *output.Form
}

func (c *commands) newLintCommand() *cobra.Command {
	l := linting{timeout: 30 * time.Second, form: output.New(output.Text, output.JSON, output.SARIF, output.GitHub)}
	long := "Lint finds what compiles and works, and would be slow with many pods, fail open\nin other tools, or give no reason. Its rules are\n\n" + listMeanings(lintRules())
	long += `
With --deep it also finds what rules can never do:

` + listMeanings(deepRules()) + `
All of these but never-seen hold for each input that a decision point has: they
follow from comparisons, tests for presence, negations, constants, and the types
of facts. Lint says nothing of conditions that it does not understand.

never-seen is what a search says: the search of "regatta policy prove" makes up
inputs, and no input made the rule true. Others may, so it is a note, with which
lint ends with 0. The search ends after --timeout for all bundles together; 0 leaves
it out. A bundle that the gate refuses is not searched.
`
	cmd := &cobra.Command{
		Use:   "lint PATH...",
		Short: "Find what would be slow, unsafe or unexplained",
		Long:  long,
		Example: `  regatta policy lint change-freeze
  regatta policy lint --deep change-freeze
  regatta policy lint policies/* -o sarif > lint.sarif`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error { return c.runLint(cmd, l, paths) },
	}
	l.form.AddTo(cmd)
	cmd.Flags().BoolVar(&l.deep, "deep", false, "also find what rules can never do")
	cmd.Flags().DurationVar(&l.timeout, "timeout", l.timeout, "how long to search with --deep at most, for all bundles; 0 to search nothing")
	return cmd
}

func listMeanings(all []meaning) string {
	out := ""
	for _, r := range all {
		out += fmt.Sprintf("  %-20s %s\n", r.id, r.text)
	}
	return out
}

func (c *commands) runLint(cmd *cobra.Command, l linting, paths []string) error {
	if l.timeout < 0 {
		return exit.UsageError(errors.New("--timeout is a duration of 0 or more"))
	}
	if cmd.Flags().Changed("timeout") && !l.deep {
		return exit.UsageError(errors.New("--timeout is for the search of --deep"))
	}
	findings := []lint.Finding{}
	add := func(path string, all []lint.Finding) {
		for _, f := range all {
			f.Problem = problemsOf(prefixProblemPaths(path, module.Problems{f.Problem}))[0]
			findings = append(findings, f)
		}
	}
	s := idleSearch{commands: c, left: l.timeout}
	defer s.closeEngine()
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
		found := lint.CheckBundle(b)
		if l.deep {
			found = append(found, deep.CheckBundle(b)...)
			if l.timeout > 0 {
				notes, err := s.findNotes(cmd, path, b, found)
				if err != nil {
					return err
				}
				found = append(found, notes...)
			}
		}
		add(path, lint.SortFindings(found))
	}
	rules := lintRules()
	if l.deep {
		rules = append(rules, deepRules()...)
	}
	if err := printFindings(cmd.OutOrStdout(), l.form.String(), rules, findings); err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(f lint.Finding) bool { return !f.Note }) {
		return exit.RefusalError(errFindings)
	}
	return nil
}

func printFindings(out io.Writer, form string, rules []meaning, findings []lint.Finding) error {
	switch form {
	case output.JSON:
		return output.PrintJSON(out, findings)
	case output.SARIF:
		return output.PrintJSON(out, asSARIF(rules, convertFindings(findings)))
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
