// SPDX-License-Identifier: Apache-2.0

package why

import (
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"golang.org/x/term"

	"github.com/regatta-sh/regatta/controllers/explain"
)

// Widths on a terminal: longer lines are hard to read. What is written to a file
// or a pipe is not wrapped, so that a sentence can be searched for.
const (
	mostWidth  = 110
	leastWidth = 50
	unwrapped  = 1 << 20
)

func widthOf(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok {
		return unwrapped
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return unwrapped
	}
	return min(max(width, leastWidth), mostWidth)
}

// newPainter colors verdicts where out is a terminal that shows colors, and
// NO_COLOR is not set.
func newPainter(out io.Writer) func(explain.Verdict, string) string {
	r := lipgloss.NewRenderer(out)
	return func(v explain.Verdict, s string) string {
		color := map[explain.Verdict]lipgloss.Color{
			explain.UpToDate: "2", explain.Placed: "2", explain.Updating: "4", explain.Moved: "4", explain.Waiting: "3",
			explain.Held: "1", explain.Hooked: "3", explain.Deleting: "5",
			explain.Refused: "1", explain.Exempted: "3",
		}[v]
		return r.NewStyle().Bold(true).Foreground(color).Render(s)
	}
}

// wrapText breaks a text at spaces. A word that is too long stays whole, so that it
// can be copied.
func wrapText(s string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.SplitAfter(s, " ") {
		if line != "" && lipgloss.Width(line+strings.TrimRight(word, " ")) > width {
			lines, line = append(lines, strings.TrimRight(line, " ")), ""
			word = strings.TrimLeft(word, " ")
		}
		line += word
	}
	return append(lines, strings.TrimRight(line, " "))
}
