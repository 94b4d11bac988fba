// SPDX-License-Identifier: Apache-2.0

package message

import "regexp"

const (
	// drawnEnd is the end of a name that an API server, or one of our controllers, draws.
	drawnEnd = `[bcdfghjklmnpqrstvwxz2456789]{5}\b`
	// longestPrefix is how much of a prefix is in a name that is drawn.
	longestPrefix = 58
)

// HideDrawnName returns an error whose text has * in place of the end of each name that was drawn behind a prefix. The next attempt
// has another name: a status that named it would be written again for each attempt, without end.
func HideDrawnName(err error, prefix string) error {
	if err == nil || prefix == "" {
		return err
	}
	prefix = prefix[:min(len(prefix), longestPrefix)]
	return &namelessError{regexp.MustCompile(regexp.QuoteMeta(prefix)+drawnEnd).ReplaceAllLiteralString(err.Error(), prefix+"*"), err}
}

type namelessError struct {
	text string
	error
}

func (e *namelessError) Error() string { return e.text }

// Unwrap gives the cause.
func (e *namelessError) Unwrap() error { return e.error }
