// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/explain"
)

// joinLines returns a text of the cluster as it may be printed on a line.
func joinLines(text string) string {
	return edit.EscapeText(strings.Join(strings.Fields(text), " "))
}

// escapedError prints an error without control characters of the text of the cluster that may be in it.
type escapedError struct{ err error }

// Error keeps the lines of the error, which may join several errors.
func (e escapedError) Error() string {
	lines := strings.Split(e.err.Error(), "\n")
	for i := range lines {
		lines[i] = edit.EscapeText(lines[i])
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the error itself.
func (e escapedError) Unwrap() error { return e.err }

// escapeErrors escapes the errors of the run of a command.
func escapeErrors(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil {
			return escapedError{err}
		}
		return nil
	}
	return cmd
}

// escapeAnswer escapes the texts of an answer that are printed.
func escapeAnswer(a *explain.Answer) {
	escapeTexts((*string)(&a.Verdict), &a.Reason, &a.Replica)
	for i := range a.Facts {
		escapeTexts(&a.Facts[i].Value)
	}
	for i := range a.Why {
		y := &a.Why[i]
		escapeTexts((*string)(&y.Verdict), &y.Reason, &y.Rule, &y.Message)
	}
	for i := range a.Nodes {
		n := &a.Nodes[i]
		escapeTexts((*string)(&n.Verdict), &n.Name, &n.Pod, &n.Reason, &n.Rule)
	}
	for _, groups := range a.Groups {
		for name, group := range groups {
			if escaped := joinLines(name); escaped != name {
				delete(groups, name)
				groups[escaped] = group
			}
		}
	}
}

func escapeTexts(texts ...*string) {
	for _, text := range texts {
		*text = joinLines(*text)
	}
}
