// SPDX-License-Identifier: Apache-2.0

// Package exit has the codes that the command line ends with, so that scripts
// can tell a policy that says no from a command that was mistyped.
package exit

import (
	"errors"

	"github.com/spf13/cobra"
)

// What the codes mean.
const (
	Fine    = 0
	Refused = 1 // a policy, a test or a signature says no
	Usage   = 2 // the command was mistyped
	Failed  = 3 // it could not run
)

// Error is an error with its code.
type Error struct {
	Code int
	Err  error
}

func (e Error) Error() string { return e.Err.Error() }
func (e Error) Unwrap() error { return e.Err }

// RefusalError says that policy says no.
func RefusalError(err error) error { return withExitCode(Refused, err) }

// UsageError says that the command was mistyped.
func UsageError(err error) error { return withExitCode(Usage, err) }

func withExitCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return Error{code, err}
}

// Code is what a command ends with that was made by Tree.
func Code(err error) int {
	var e Error
	switch {
	case err == nil:
		return Fine
	case errors.As(err, &e):
		return e.Code
	}
	return Usage // cobra's own, before a command ran
}

// WithExitCodes sees to it that the errors of a command, and of all below it, have a
// code: those that come from running it and say nothing else, Failed. What was
// mistyped says how it is typed.
func WithExitCodes(cmd *cobra.Command) *cobra.Command {
	wrapUsageErrors(cmd)
	for _, below := range cmd.Commands() {
		WithExitCodes(below)
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			var e Error
			if err != nil && !errors.As(err, &e) {
				err = Error{Failed, err}
			}
			return err
		}
	}
	return cmd
}
