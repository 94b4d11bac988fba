// SPDX-License-Identifier: Apache-2.0

package exit

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// refuseUnknownCommands makes a command that only has subcommands refuse a word that names none of them:
// cobra would print the help, as if nothing was wrong. Without arguments the help is what was asked for.
func refuseUnknownCommands(cmd *cobra.Command) {
	if !cmd.HasSubCommands() || cmd.Runnable() || cmd.Args != nil {
		return
	}
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.DisableFlagsInUseLine = true // it has none but --help
}

// wrapUsageErrors makes a mistyped command print its usage: cobra only counts arguments, and pflag
// only prints the error of a Go function about a value.
func wrapUsageErrors(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var value *pflag.InvalidValueError
		var unknown *pflag.NotExistError
		switch {
		case errors.As(err, &value):
			return UsageError(fmt.Errorf("--%s is %q: %s", value.GetFlag().Name, value.GetValue(), invalidValueReason(value)))
		case errors.As(err, &unknown):
			return UsageError(fmt.Errorf("%w; %s --help lists them", err, cmd.CommandPath()))
		}
		return UsageError(err)
	})
	cmd.SuggestionsMinimumDistance = 2 // letters, as in the suggestions that cobra makes itself
	takes := cmd.Args
	if takes == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := takes(cmd, args)
		var said Error
		switch {
		case err == nil || errors.As(err, &said):
			return err
		case cmd.HasSubCommands() && len(args) > 0:
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				return UsageError(fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or ")))
			}
			return UsageError(fmt.Errorf("%w; %s --help lists them", err, cmd.CommandPath()))
		}
		return UsageError(fmt.Errorf("%w; it is %s", err, cmd.UseLine()))
	}
}

// invalidValueReason is what is wrong with the value of a flag.
func invalidValueReason(value *pflag.InvalidValueError) string {
	var number *strconv.NumError
	if !errors.As(value, &number) {
		return value.Unwrap().Error()
	}
	kind := map[string]string{"int": "an integer", "int64": "an integer", "float64": "a number", "bool": "true or false"}[value.GetFlag().Value.Type()]
	if kind == "" {
		kind = "a " + value.GetFlag().Value.Type()
	}
	if errors.Is(number, strconv.ErrRange) {
		return "it is too large"
	}
	return "it must be " + kind
}

// FailOnPrintError makes a command, or one below it, end with Failed if its output could not be
// printed: a report that is cut off looks like a good one.
func FailOnPrintError(cmd *cobra.Command) *cobra.Command {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			out := &output{Writer: cmd.OutOrStdout()}
			cmd.SetOut(out)
			err := run(cmd, args)
			if out.err != nil {
				return Error{Failed, fmt.Errorf("printing: %w", out.err)}
			}
			return err
		}
	}
	for _, below := range cmd.Commands() {
		FailOnPrintError(below)
	}
	return cmd
}

// output is a writer that remembers its first error.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}
