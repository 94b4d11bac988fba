// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"fmt"
	"strings"
	"unicode"
)

// EscapeText returns a text of the cluster as it may be printed on a line of a terminal: control characters, such as
// those of escape sequences and line breaks, are replaced by their codes.
func EscapeText(text string) string {
	var out strings.Builder
	for _, r := range text {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			fmt.Fprintf(&out, `\x%02x`, r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}
