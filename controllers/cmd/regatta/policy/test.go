// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/cases"
	"github.com/regatta-sh/regatta/engine/module"
)

var errFailed = errors.New("tests failed")

// trial is one run of the command test.
type trial struct {
	path     string
	kind     kind
	coverage bool
	minimum  float64
	verbose  bool
	mutation mutation
	form     *output.Form
}

func (c *commands) newTestCommand() *cobra.Command {
	t := trial{form: output.New(output.Text, output.JSON, output.JUnit)}
	var again bool
	cmd := &cobra.Command{
		Use:   "test FOLDER",
		Short: "Run the tests and cases of a bundle",
		Long: `Test runs the Rego tests of a bundle, which are rules that begin with test_ in
files that end with _test.rego, and its cases, which are YAML files below a folder
named cases: a question, and the part of the answer that is known.

With --watch it runs them again whenever a file changes, until it is interrupted.

With --mutate it changes the rules once the tests pass, one change at a time: it
removes a rule, takes a condition for true or negates it, replaces a comparison by
another one, and changes a number, a text or a boolean. It runs all tests and cases
for each change and prints the changes for which none of them fails: nobody would
notice if the policy said that. A change that the gate refuses is invalid and does not
count. Each change takes about half a second.`,
		Example: `  regatta policy test change-freeze --min 90
  regatta policy test change-freeze --watch
  regatta policy test change-freeze -o junit > report.xml
  regatta policy test change-freeze --mutate --min-killed 80`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.path = args[0]
			if t.minimum < 0 || t.minimum > 100 {
				return exit.UsageError(errors.New("--min is a percentage, from 0 to 100"))
			}
			if err := t.mutation.checkFlags(cmd); err != nil {
				return err
			}
			if !again {
				return c.runTests(cmd, t)
			}
			if t.form.String() != output.Text {
				return exit.UsageError(errors.New("--watch prints text only"))
			}
			return watchFolder(cmd.Context(), t.path, func() {
				if err := c.runTests(cmd, t); err != nil {
					fmt.Fprintln(cmd.OutOrStdout(), "Error:", err)
				}
			})
		},
	}
	t.kind.addFlags(cmd)
	t.form.AddTo(cmd)
	t.mutation.addFlags(cmd)
	cmd.Flags().BoolVar(&t.coverage, "coverage", false, "print how many percent of the lines the Rego tests evaluate, and those they do not")
	cmd.Flags().Float64Var(&t.minimum, "min", 0, "how many percent they must evaluate at least")
	cmd.Flags().BoolVarP(&t.verbose, "verbose", "v", false, "print tests that pass, and changes that are invalid, too")
	cmd.Flags().BoolVar(&again, "watch", false, "run them again whenever a file changes")
	return cmd
}

// outcome is the result of a run.
type outcome struct {
	Path string `json:"path"`
	gate.Report
	Cases   []caseOutcome `json:"cases,omitempty"`
	Mutants *mutants      `json:"mutants,omitempty"`
}

type caseOutcome struct {
	Name     string   `json:"name"`
	Place    string   `json:"place"`
	Problems []string `json:"problems,omitempty"`
}

func (c *commands) runTests(cmd *cobra.Command, t trial) error {
	b, builtin, err := c.loadWithBuiltin(t.path, &t.kind)
	if ps := refusalProblems(t.path, err); ps != nil {
		o := outcome{Path: t.path, Report: gate.Report{Refused: fetched, Problems: ps}}
		if err := o.printOutcome(cmd.OutOrStdout(), t); err != nil {
			return err
		}
		return o.failureError(t.minimum)
	}
	if err != nil {
		return err
	}
	opts := []gate.Option{gate.WithRunner(c.runner)}
	if t.coverage || t.minimum > 0 {
		opts = append(opts, gate.WithCoverage())
	}
	report, err := gate.New(builtin, opts...).AdmitBundle(cmd.Context(), b, nil, nil)
	if problemsOf(err) == nil && err != nil {
		return err
	}
	report.Problems = problemsOf(prefixProblemPaths(t.path, report.Problems))
	for i, r := range report.Tests {
		report.Tests[i].Place = bundleFilePath(t.path, r.Place)
	}
	if report.Coverage != nil {
		for i, m := range report.Coverage.Missed {
			report.Coverage.Missed[i] = bundleFilePath(t.path, m)
		}
	}
	o := outcome{Path: t.path, Report: report}
	if o.Cases, err = c.runCases(cmd, t, b, builtin); err != nil {
		return err
	}
	failed := o.failureError(t.minimum)
	if t.mutation.enabled && failed == nil {
		found, err := c.runMutants(cmd, t, b, builtin)
		o.Mutants, failed = &found, err
		if err == nil {
			failed = found.failureError(t.mutation.minimum)
		}
	}
	if err := o.printOutcome(cmd.OutOrStdout(), t); err != nil {
		return err
	}
	return failed
}

// failureError is an error if something failed.
func (o outcome) failureError(minimum float64) error {
	failed := o.Refused != ""
	for _, c := range o.Cases {
		failed = failed || len(c.Problems) > 0
	}
	if failed {
		return exit.RefusalError(errFailed)
	}
	covered := 0.0
	if o.Coverage != nil {
		covered = o.Coverage.CoveredPercent()
	}
	if covered < minimum {
		return exit.RefusalError(fmt.Errorf("tests evaluate %.1f %% of the lines, and %g %% are wanted", covered, minimum))
	}
	return nil
}

// runCases runs the cases of a folder. A file that cannot be read counts as a case that fails.
func (c *commands) runCases(cmd *cobra.Command, t trial, b, builtin *bundle.Bundle) (out []caseOutcome, err error) {
	if info, err := os.Stat(t.path); err != nil || !info.IsDir() {
		return nil, err
	}
	files, err := cases.Read(os.DirFS(t.path))
	unread := problemsOf(prefixProblemPaths(t.path, err))
	for _, p := range unread {
		out = append(out, caseOutcome{Name: "reading the cases", Place: p.SourcePosition(), Problems: []string{p.Message}})
	}
	if unread != nil {
		err = nil
	}
	if err != nil || len(files) == 0 {
		return out, err
	}
	e, err := engine.FromBundle(builtin)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	var set bundle.Set
	if b != builtin {
		set = bundle.Set{b}
	}
	for _, f := range files {
		for _, r := range cases.RunFile(cmd.Context(), e, set, f, cases.InNamespace(t.kind.namespace)) {
			place := module.Problem{File: filepath.Join(t.path, r.File), Row: r.Row, Col: r.Col}.SourcePosition()
			out = append(out, caseOutcome{Name: r.Name, Place: place, Problems: r.Problems})
		}
	}
	return out, nil
}

func (o outcome) printOutcome(out io.Writer, t trial) error {
	switch t.form.String() {
	case output.JSON:
		return output.PrintJSON(out, o)
	case output.JUnit:
		return o.writeJUnit(out)
	}
	for _, p := range o.Problems {
		fmt.Fprintln(out, p)
	}
	for _, c := range o.Cases {
		for _, p := range c.Problems {
			fmt.Fprintf(out, "%s: %s: %s\n", c.Place, c.Name, p)
		}
		if len(c.Problems) == 0 && t.verbose {
			fmt.Fprintf(out, "%s: passed: %s\n", c.Place, c.Name)
		}
	}
	passed := 0
	for _, r := range o.Tests {
		if r.Passed {
			passed++
			if t.verbose {
				fmt.Fprintf(out, "%s: passed: %s\n", r.Place, r.Name)
			}
		}
	}
	fmt.Fprintf(out, "%d of %s passed, %s run\n", passed, formatCount(len(o.Tests), "test"), formatCount(len(o.Cases), "case"))
	if c := o.Coverage; c != nil {
		for _, m := range c.Missed {
			fmt.Fprintf(out, "%s: no test evaluates this\n", m)
		}
		fmt.Fprintf(out, "coverage: %.1f %% of %s\n", c.CoveredPercent(), formatCount(c.Lines, "line"))
	}
	if o.Mutants != nil {
		o.Mutants.printText(out, t.verbose)
	}
	return nil
}
