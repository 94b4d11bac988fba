// SPDX-License-Identifier: Apache-2.0

// Package exit has the exit codes of the command line, so that scripts can distinguish a refusal by
// policy from a command that was mistyped.
package exit

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	Fine    = 0
	Refused = 1 // refused by a policy, a test or a signature
	Usage   = 2 // the command was mistyped
	Failed  = 3 // the command could not run
)

// Error is an error with its code.
type Error struct {
	Code int
	Err  error
}

func (e Error) Error() string { return e.Err.Error() }
func (e Error) Unwrap() error { return e.Err }

// RefusalError gives an error the code of a refusal by policy.
func RefusalError(err error) error { return withExitCode(Refused, err) }

// UsageError gives an error the code of a command that was mistyped.
func UsageError(err error) error { return withExitCode(Usage, err) }

// UsageErrorf makes an error of a command that was mistyped.
func UsageErrorf(format string, args ...any) error { return UsageError(fmt.Errorf(format, args...)) }

// RefusalErrorf makes an error of a refusal.
func RefusalErrorf(format string, args ...any) error {
	return RefusalError(fmt.Errorf(format, args...))
}

func withExitCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return Error{code, err}
}

// Code is the exit code of a command for an error.
func Code(err error) int {
	var e Error
	switch {
	case err == nil:
		return Fine
	case errors.As(err, &e):
		return e.Code
	}
	return Usage // an error of cobra, before a command ran
}

// WithExitCodes makes the errors of a command, and of all commands below it, carry an exit code. An
// error of the run that has no other code gets Failed. A usage error is printed with the usage of the
// command. A word that names no subcommand is a usage error.
func WithExitCodes(cmd *cobra.Command) *cobra.Command {
	refuseUnknownCommands(cmd)
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
