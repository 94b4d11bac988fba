// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/module"
)

// errRefused ends the command; the problems were printed already.
var errRefused = errors.New("the policies are refused")

func (c *commands) newCheckCommand() *cobra.Command {
	var k kind
	form := output.New(output.Text, output.JSON)
	cmd := &cobra.Command{
		Use:   "check PATH...",
		Short: "Say whether bundles would be let in",
		Long: `Check does to each bundle what a cluster does before it is active: it holds it
against the contract, compiles it with the built-in policies and the bundles named
before it, and runs its tests. A path is a folder, a .tar.gz file or a .rego file.

Problems are printed as file:row:col: message.`,
		Example: `  regatta policy check change-freeze one-zone-at-a-time
  regatta policy check team-rules -n shop -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			var active bundle.Set
			refused := false
			for _, path := range paths {
				b, builtin, err := c.loadWithBuiltin(path, &k)
				report := gate.Report{}
				if err == nil {
					report, err = gate.New(builtin, gate.WithRunner(c.runner)).AdmitBundle(cmd.Context(), b, active, nil)
					err = prefixProblemPaths(path, err)
				}
				if err := printCheckReport(cmd.OutOrStdout(), form.String(), path, report, err); err != nil {
					return err
				}
				if err != nil {
					refused = true
				} else if !k.builtin {
					active = append(active, b)
				}
			}
			if refused {
				return exit.RefusalError(errRefused)
			}
			return nil
		},
	}
	k.addFlags(cmd)
	form.AddTo(cmd)
	return cmd
}

// printCheckReport prints the findings about one bundle. It returns errors that are not about the
// bundle.
func printCheckReport(out io.Writer, form, path string, report gate.Report, found error) error {
	problems := refusalProblems(path, found)
	if found != nil && problems == nil {
		return found
	}
	if form == output.JSON {
		report.Problems = problems
		return output.PrintJSON(out, struct {
			Path string `json:"path"`
			gate.Report
		}{path, report})
	}
	for _, p := range problems {
		fmt.Fprintln(out, p)
	}
	if found == nil {
		fmt.Fprintf(out, "%s: good, with %s\n", path, formatCount(len(report.Tests), "test"))
	}
	return nil
}

func problemsOf(err error) module.Problems {
	var ps module.Problems
	errors.As(err, &ps)
	return ps
}

func formatCount(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
