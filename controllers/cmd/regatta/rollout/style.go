// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"

	"github.com/regatta-sh/regatta/controllers/explain"
)

// styles are the text styles for a terminal.
type styles struct {
	plain, bold, dim, good, bad, busy, wait lipgloss.Style
}

func newStyles(r *lipgloss.Renderer) styles {
	color := func(c string) lipgloss.Style { return r.NewStyle().Foreground(lipgloss.Color(c)) }
	return styles{
		plain: r.NewStyle(), bold: r.NewStyle().Bold(true), dim: r.NewStyle().Faint(true),
		good: color("2"), bad: color("1"), busy: color("4"), wait: color("3"),
	}
}

func (st styles) verdictStyle(v explain.Verdict) lipgloss.Style {
	switch v {
	case explain.UpToDate:
		return st.good
	case explain.Updating, explain.Moved:
		return st.busy
	case explain.Held, explain.Deleting:
		return st.bad
	}
	return st.wait
}

// progressBar shows how many of all pods are done, and how many have begun.
func (st styles) progressBar(done, begun, all, width int) string {
	if width < 1 {
		return ""
	}
	if all < 1 {
		done, begun, all = 1, 1, 1
	}
	cells := func(n int) int { return width * min(n, all) / all }
	full, half := cells(done), cells(max(begun, done))
	return st.good.Render(strings.Repeat("█", full)) + st.busy.Render(strings.Repeat("▒", half-full)) + st.dim.Render(strings.Repeat("░", width-half))
}

// truncateLine shortens a line so that it is not wrapped.
func truncateLine(s string, width int) string {
	return ansi.Truncate(strings.ReplaceAll(s, "\n", " "), max(width, 0), "…")
}
