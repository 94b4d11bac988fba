// SPDX-License-Identifier: Apache-2.0

// Package audit has the commands that export decisions as evidence, and verify such evidence.
package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/evidence"
)

// NewCommand makes the command with those below it. builtin has the policies of the program.
func NewCommand(builtin fs.FS) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Export decisions as evidence, and verify such evidence without a cluster",
		Long: `Audit puts the decisions of a time, and the policies that made them, into one archive
that an auditor can verify later without a cluster. All of its commands end with

  0  all is fine
  1  the evidence is not as it was exported, or a decision does not follow from it
  2  the command was mistyped
  3  it could not run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newExportCommand(builtin), newVerifyCommand())
	return exit.WithExitCodes(exit.FailOnPrintError(cmd))
}

// wrapRefusal gives an error the code of a refusal if it is about the evidence. Its text may have words of the archive.
func wrapRefusal(err error) error {
	var tampered evidence.TamperedError
	var signature bundle.SignatureError
	if errors.As(err, &tampered) || errors.As(err, &signature) {
		return exit.RefusalErrorf("%s", edit.EscapeText(err.Error()))
	}
	return err
}

// std is the name of the standard input or output.
const std = "-"

// openInput opens a file; - is the standard input.
func openInput(in io.Reader, path string) (io.ReadCloser, error) {
	if path == std {
		return io.NopCloser(in), nil
	}
	return os.Open(path)
}

// moment is the value of a flag: a time, or how long ago it was.
type moment struct {
	time.Time
	clock func() time.Time
}

// Set accepts 2026-12-01T10:00:00Z, 2026-12-01 and 36h.
func (m *moment) Set(text string) error {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			m.Time = t
			return nil
		}
	}
	ago, err := time.ParseDuration(text)
	if err != nil || ago < 0 {
		return errors.New("it is a time such as 2026-12-01T10:00:00Z, a day (UTC) such as 2026-12-01, or how long ago it was, such as 36h")
	}
	m.Time = m.clock().Add(-ago)
	return nil
}

// String is the time; empty if none is set.
func (m *moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.UTC().Format(time.RFC3339)
}

// Type is what help calls a value.
func (m *moment) Type() string { return "time" }

// describeTimes says between which times the decisions of an archive are: those that were asked for, or those of its hours.
func describeTimes(m *evidence.Manifest) string {
	since, until := "its first decision", "its last"
	if len(m.Hours) > 0 {
		since, until = formatTime(m.Hours[0].Start), formatTime(m.Hours[len(m.Hours)-1].Start.Add(time.Hour))
	}
	if m.Since != nil {
		since = formatTime(*m.Since)
	}
	if m.Until != nil {
		until = formatTime(*m.Until)
	}
	return fmt.Sprintf("between %s and %s UTC", since, until)
}

func formatTime(t time.Time) string {
	layout := "2006-01-02 15:04"
	if t.Second() > 0 || t.Nanosecond() > 0 {
		layout = "2006-01-02 15:04:05.999999999"
	}
	return t.UTC().Format(layout)
}

func formatCount(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
