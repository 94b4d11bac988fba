// SPDX-License-Identifier: Apache-2.0

package message

import "regexp"

const (
	// drawnEnd matches the random end of a name that an API server or a controller of Regatta generates.
	drawnEnd = `[bcdfghjklmnpqrstvwxz2456789]{5}\b`
	// longestPrefix is how much of its prefix a generated name keeps.
	longestPrefix = 58
)

// HideDrawnName returns an error whose text has * in place of the random end of each name with a prefix. The next attempt
// has another name, and a status with that name would be written again for each attempt, without end.
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

// Unwrap returns the cause.
func (e *namelessError) Unwrap() error { return e.error }
