// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Row is what happened where something broke.
type Row struct {
	Broken, In string
	// Tried is how often that was done, and Slowest how long it took at most until all was well.
	Tried   int
	Slowest time.Duration
	// Became is what became of it; several if it was not the same each time.
	Became []string
	// Wrong is what should not have happened.
	Wrong []string
}

// Report is what came out.
type Report struct {
	Rows []*Row
	// Points is at how many points agents were to be killed, and Kills how often they were.
	Points, Kills int
	Took          time.Duration
}

// row returns the row of what broke, and adds one if the report has none yet.
func (r *Report) row(broken, in string) *Row {
	i := slices.IndexFunc(r.Rows, func(row *Row) bool { return row.Broken == broken && row.In == in })
	if i < 0 {
		i = len(r.Rows)
		r.Rows = append(r.Rows, &Row{Broken: broken, In: in})
	}
	return r.Rows[i]
}

// blame adds what was found later to the row of what broke.
func (r *Report) blame(broken, in, wrong string) {
	row := r.row(broken, in)
	row.Wrong = append(row.Wrong, wrong)
}

// note adds one try to the row of what broke.
func (r *Report) note(broken, in string, took time.Duration, became, wrong string) {
	row := r.row(broken, in)
	row.Tried++
	row.Slowest = max(row.Slowest, took)
	if became != "" && !slices.Contains(row.Became, became) {
		row.Became = append(row.Became, became)
		slices.Sort(row.Became)
	}
	if wrong != "" {
		r.blame(broken, in, wrong)
	}
}

// Err is nil if everything was as promised.
func (r *Report) Err() error {
	var wrong []string
	for _, row := range r.Rows {
		for _, text := range row.Wrong {
			wrong = append(wrong, fmt.Sprintf("%s, in %s: %s", row.Broken, row.In, text))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d violations:\n%s", len(wrong), strings.Join(wrong, "\n"))
	}
	if r.Kills*4 < r.Points*3 {
		return fmt.Errorf("too little was tried: agents were killed %d times at %d points", r.Kills, r.Points)
	}
	return nil
}

// cells are the table, with its head.
func (r *Report) cells() [][]string {
	out := [][]string{{"Broken", "In", "Tried", "Slowest", "What happened"}}
	for _, row := range r.Rows {
		became := strings.Join(row.Became, "; or ")
		if len(row.Wrong) > 0 {
			became = "WRONG: " + strings.Join(row.Wrong, "; ")
		}
		out = append(out, []string{row.Broken, row.In, fmt.Sprint(row.Tried), fmt.Sprintf("%.1f s", row.Slowest.Seconds()), became})
	}
	return out
}

func (r *Report) summary() string {
	tried := 0
	for _, row := range r.Rows {
		tried += row.Tried
	}
	violations := 0
	for _, row := range r.Rows {
		violations += len(row.Wrong)
	}
	return fmt.Sprintf("%d faults tried in %s, agents killed %d times, violations: %d\n", tried, r.Took.Round(time.Second), r.Kills, violations)
}

func (r *Report) String() string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, row := range r.cells() {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush()
	return out.String() + "\n" + r.summary()
}

// Markdown is the same as a table of Markdown.
func (r *Report) Markdown() string {
	var out strings.Builder
	for i, row := range r.cells() {
		for j := range row {
			row[j] = strings.ReplaceAll(row[j], "|", `\|`)
		}
		fmt.Fprintf(&out, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			out.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return out.String() + "\n" + r.summary()
}
