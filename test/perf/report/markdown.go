// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
)

// Markdown is a table for a README. Every row has as many cells as the header.
func Markdown(header []string, rows [][]string) string {
	var out strings.Builder
	line := func(cells []string) { out.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(header)
	out.WriteString(strings.Repeat("|---", len(header)) + "|\n")
	for _, row := range rows {
		line(row)
	}
	return out.String()
}
