// SPDX-License-Identifier: Apache-2.0

package exit_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

func TestCodes(t *testing.T) {
	for name, tc := range map[string]struct {
		args string
		err  error // of the command
		want int
	}{
		"a command that is fine":                 {args: "do x", want: exit.Fine},
		"help":                                   {args: "do --help", want: exit.Fine},
		"a policy that says no":                  {args: "do x", err: exit.RefusalError(errors.New("no")), want: exit.Refused},
		"a policy that says no, somewhere below": {args: "do x", err: fmt.Errorf("reading: %w", exit.RefusalError(errors.New("no"))), want: exit.Refused},
		"a value that makes no sense":            {args: "do x", err: exit.UsageError(errors.New("no")), want: exit.Usage},
		"an argument too few":                    {args: "do", want: exit.Usage},
		"a flag that is not there":               {args: "do x --nope", want: exit.Usage},
		"a flag without its value":               {args: "do x --n", want: exit.Usage},
		"two flags that exclude each other":      {args: "do x --n 1 --m", want: exit.Usage},
		"a command that is not there":            {args: "dont", want: exit.Usage},
		"a file that is not there":               {args: "do x", err: errors.New("no such file"), want: exit.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			root := &cobra.Command{Use: "root", SilenceErrors: true, SilenceUsage: true}
			do := &cobra.Command{Use: "do X", Args: cobra.ExactArgs(1), RunE: func(*cobra.Command, []string) error { return tc.err }}
			do.Flags().Int("n", 0, "")
			do.Flags().Bool("m", false, "")
			do.MarkFlagsMutuallyExclusive("n", "m")
			root.AddCommand(do)
			exit.WithExitCodes(root).SetArgs(strings.Fields(tc.args))
			root.SetOut(io.Discard)
			if got := exit.Code(root.Execute()); got != tc.want {
				t.Errorf("it ends with %d, want %d", got, tc.want)
			}
		})
	}
}

func TestAWordThatNamesNoSubcommandIsRefused(t *testing.T) {
	for args, want := range map[string]string{
		"":               "",
		"below":          "",
		"below --help":   "",
		"belwo":          `unknown command "belwo" for "root"; did you mean below?`,
		"below deeper":   "",
		"below depper":   `unknown command "depper" for "root below"; did you mean deeper?`,
		"below x":        `unknown command "x" for "root below"; root below --help lists them`,
		"below deep xxx": `unknown command "xxx" for "root below deep"; root below deep --help lists them`,
		"below deep do":  "",
		"mine x":         "",
	} {
		t.Run(args, func(t *testing.T) {
			root := &cobra.Command{Use: "root", SilenceErrors: true, SilenceUsage: true}
			below, deep := &cobra.Command{Use: "below"}, &cobra.Command{Use: "deep"}
			run := func(*cobra.Command, []string) error { return nil }
			deep.AddCommand(&cobra.Command{Use: "do", RunE: run})
			below.AddCommand(&cobra.Command{Use: "deeper", RunE: run}, deep)
			mine := &cobra.Command{Use: "mine WORD", Args: cobra.ExactArgs(1), RunE: run} // has subcommands and words of its own
			mine.AddCommand(&cobra.Command{Use: "do", RunE: run})
			root.AddCommand(below, mine)
			exit.WithExitCodes(exit.WithExitCodes(root)).SetArgs(strings.Fields(args))
			var out strings.Builder
			root.SetOut(&out)
			err := root.Execute()
			if want == "" && err != nil || want != "" && (err == nil || err.Error() != want || exit.Code(err) != exit.Usage || out.Len() > 0) {
				t.Errorf("it ends with %v and prints\n%s", err, out.String())
			}
			if words := strings.Fields(args); len(words) < 2 && want == "" && !strings.Contains(out.String(), "[command]") {
				t.Errorf("it prints no help but\n%s", out.String())
			}
		})
	}
}
