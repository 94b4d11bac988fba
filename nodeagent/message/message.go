// SPDX-License-Identifier: Apache-2.0

// Package message bounds texts of containers and runtimes for events and statuses.
package message

import (
	"fmt"
	"strings"
)

// MostBytes is how many bytes of a text are kept.
const MostBytes = 1024

// Truncate returns the beginning of a text, as valid UTF-8 of at most MostBytes.
func Truncate(text string) string {
	if len(text) > MostBytes {
		text = text[:MostBytes]
	}
	for { // invalid bytes are removed, and so is a character that was cut in two
		valid := strings.ToValidUTF8(text, "")
		if len(valid) == len(text) {
			return strings.TrimSpace(valid)
		}
		text = valid
	}
}

// ErrorText returns the message of an error, bounded in bytes.
func ErrorText(err error) string { return Truncate(err.Error()) }

// QuoteCommand returns the beginning of a command, as a list of quoted words. Users determine the length of a
// command.
func QuoteCommand(words []string) string {
	const most = 256
	var out strings.Builder
	out.WriteByte('[')
	for i, word := range words {
		if i > 0 {
			out.WriteByte(' ')
		}
		if len(word) > most {
			word = word[:most]
		}
		fmt.Fprintf(&out, "%q", word)
		if out.Len() > most {
			return Truncate(out.String()[:most]) + "..."
		}
	}
	out.WriteByte(']')
	return out.String()
}
