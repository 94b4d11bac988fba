// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Bars writes the reports of several workloads as bars over the same time, a line each.
type Bars struct{ Reports []simulation.Report }

// barWidth is how many characters a bar has.
const barWidth = 40

// Characters of a bar.
const (
	barMoves = '=' // pods are updated
	barHeld  = '-' // a policy, the strategy or a budget holds what is left
)

// causesTold is how many causes of waiting are printed for each workload, the longest first.
const causesTold = 3

// WriteBars writes the bars.
func (b Bars) WriteBars(w io.Writer) error {
	begin, end := b.timeRange()
	noun := "workloads"
	if len(b.Reports) == 1 {
		noun = "workload"
	}
	lines := []string{fmt.Sprintf("%d %s from %s, each simulated alone: = pods are updated, - held", len(b.Reports), noun, formatTime(begin))}
	width := 0
	for _, r := range b.Reports {
		width = max(width, len(subjectText(r.Workload)))
	}
	for _, r := range b.Reports {
		lines = append(lines, fmt.Sprintf("%-*s  |%s|  %s", width, subjectText(r.Workload), drawBar(r, begin, end), outcomeText(r)))
		for _, c := range findCauses(r) {
			lines = append(lines, strings.Repeat(" ", width+4)+c)
		}
	}
	lines = append(lines, fmt.Sprintf("%-*s  |%-*s|", width, "", barWidth, fmt.Sprintf("0s%*s", barWidth-2, end.Sub(begin))))
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// timeRange is from when the first rollout begins until the last one ends.
func (b Bars) timeRange() (begin, end time.Time) {
	for i, r := range b.Reports {
		if i == 0 || r.Began.Before(begin) {
			begin = r.Began
		}
		if at := settledAt(r); i == 0 || at.After(end) {
			end = at
		}
	}
	return begin, end
}

// settledAt is when anything last happened in a rollout.
func settledAt(r simulation.Report) time.Time {
	if r.End.Since != nil {
		return *r.End.Since
	}
	return r.End.At
}

// drawBar draws the bar of a rollout. One that is stuck is held to the end.
func drawBar(r simulation.Report, begin, end time.Time) string {
	slice := max(end.Sub(begin)/barWidth, 1)
	var b strings.Builder
	for i := range barWidth {
		from := begin.Add(slice * time.Duration(i))
		over := r.End.How != simulation.Stuck && !from.Before(r.End.At)
		if over || !from.Add(slice).After(r.Began) {
			b.WriteByte(' ')
			continue
		}
		b.WriteByte(charAt(r, from.Add(slice/2)))
	}
	return b.String()
}

// charAt is the character of a bar at a time.
func charAt(r simulation.Report, at time.Time) byte {
	char := byte(barMoves)
	for _, s := range r.Steps {
		if s.At.After(at) {
			break
		}
		char = barMoves
		if s.Verdict == explain.Held {
			char = barHeld
		}
	}
	return char
}

// outcomeText says how a rollout ends.
func outcomeText(r simulation.Report) string {
	waves := "waves"
	if r.Waves == 1 {
		waves = "wave"
	}
	switch r.End.How {
	case simulation.Done:
		return fmt.Sprintf("done after %s in %d %s", r.TotalDuration(), r.Waves, waves)
	case simulation.Stopped:
		return fmt.Sprintf("stopped after %s in %d %s", r.TotalDuration(), r.Waves, waves)
	}
	return fmt.Sprintf("stuck after %s in %d %s", settledAt(r).Sub(r.Began), r.Waves, waves)
}

// findCauses says by which rules and budgets a rollout is held, and how long. Those that hold what is stuck come first.
func findCauses(r simulation.Report) []string {
	took := map[string]time.Duration{}
	var order []string
	for i, s := range r.Steps {
		end := settledAt(r)
		if i+1 < len(r.Steps) {
			end = r.Steps[i+1].At
		}
		for _, cause := range causesOf(s) {
			if _, known := took[cause]; !known {
				order = append(order, cause)
			}
			took[cause] += max(end.Sub(s.At), 0)
		}
	}
	var last []string // for how long these hold is not known
	if r.End.How == simulation.Stuck && len(r.Steps) > 0 {
		last = causesOf(r.Steps[len(r.Steps)-1])
		for _, cause := range last {
			took[cause] = math.MaxInt64
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(took[b], took[a]) })
	var out []string
	for _, cause := range order[:min(len(order), causesTold)] {
		long := took[cause].String()
		if slices.Contains(last, cause) {
			long = "to the end"
		}
		out = append(out, "held "+long+" by "+cause)
	}
	if more := len(order) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and by %d others", more))
	}
	return out
}

// causesOf names the rules and the budgets that hold pods after a step, each once.
func causesOf(s simulation.Step) (out []string) {
	add := func(cause string) {
		if !slices.Contains(out, cause) {
			out = append(out, cause)
		}
	}
	for _, y := range s.Why {
		if y.Verdict != explain.Held || y.Rule == "" || y.Rule == decision.RuleWalk {
			continue
		}
		if budget := strings.TrimPrefix(budgetOf(s, y), ", "); budget != "" {
			add(budget)
		} else {
			add(fmt.Sprintf("rule %s (%s)", y.Rule, y.Reason))
		}
	}
	if len(s.Why) == 0 && s.Verdict == explain.Held && s.Rule != "" {
		add(fmt.Sprintf("rule %s (%s)", s.Rule, s.Reason))
	}
	return out
}

func subjectText(s decision.Subject) string { return s.Kind + " " + s.Namespace + "/" + s.Name }
