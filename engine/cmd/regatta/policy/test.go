package policy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/cases"
	"github.com/regatta-sh/regatta/engine/cmd/regatta/exit"
)

var errFailed = errors.New("tests failed")

func (c *commands) test() *cobra.Command {
	var k kind
	var coverage, verbose bool
	cmd := &cobra.Command{
		Use:   "test FOLDER",
		Short: "Run the tests and cases of a bundle",
		Long: `Test runs the Rego tests of a bundle, which are rules that begin with test_ in
files that end with _test.rego, and its cases, which are YAML files below a folder
named cases: a question, and the part of the answer that is known.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, builtin, err := c.load(args[0], &k)
			if err != nil {
				return err
			}
			opts := []gate.Option{gate.WithRunner(c.runner)}
			if coverage {
				opts = append(opts, gate.WithCoverage())
			}
			report, err := gate.New(builtin, opts...).Admit(cmd.Context(), b, nil, nil)
			if problemsOf(err) == nil && err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			for _, p := range problemsOf(at(args[0], err)) {
				fmt.Fprintln(out, p)
			}
			ran, failed, caseErr := c.cases(cmd, args[0], b, builtin, verbose)
			if caseErr != nil {
				return caseErr
			}
			summary(out, report, ran, verbose)
			if err != nil || failed > 0 {
				return exit.No(errFailed)
			}
			return nil
		},
	}
	k.flags(cmd)
	cmd.Flags().BoolVar(&coverage, "coverage", false, "print how many percent of the lines the Rego tests evaluate, and those they do not")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print tests that pass too")
	return cmd
}

// cases runs the cases of a folder.
func (c *commands) cases(cmd *cobra.Command, path string, b, builtin *bundle.Bundle, verbose bool) (ran, failed int, err error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return 0, 0, err
	}
	files, err := cases.Read(os.DirFS(path))
	if err != nil || len(files) == 0 {
		return 0, 0, err
	}
	e, err := engine.FromBundle(builtin)
	if err != nil {
		return 0, 0, err
	}
	defer e.Close()
	var set bundle.Set
	if b != builtin {
		set = bundle.Set{b}
	}
	for _, f := range files {
		for _, r := range cases.Run(cmd.Context(), e, set, f) {
			ran++
			place := filepath.Join(path, r.File) + ":1:1"
			for _, p := range r.Problems {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s: %s\n", place, r.Name, p)
			}
			if !r.Passed() {
				failed++
			} else if verbose {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: passed: %s\n", place, r.Name)
			}
		}
	}
	return ran, failed, nil
}

func summary(out io.Writer, report gate.Report, cases int, verbose bool) {
	passed := 0
	for _, t := range report.Tests {
		if t.Passed {
			passed++
			if verbose {
				fmt.Fprintf(out, "%s: passed: %s\n", t.Place, t.Name)
			}
		}
	}
	fmt.Fprintf(out, "%d of %s passed, %s run\n", passed, plural(len(report.Tests), "test"), plural(cases, "case"))
	if c := report.Coverage; c != nil {
		for _, m := range c.Missed {
			fmt.Fprintf(out, "%s: no test evaluates this\n", m)
		}
		fmt.Fprintf(out, "coverage: %.1f %% of %s\n", c.Percent(), plural(c.Lines, "line"))
	}
}
