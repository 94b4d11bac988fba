// SPDX-License-Identifier: Apache-2.0

// Package simulate reads or generates a fleet for the simulation of a rollout, and reports the result.
package simulate

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/simulation"
)

// zone groups pods by where they run.
const zone = "zone"

// Text writes a report as text for people.
type Text struct {
	simulation.Report
	// By groups the pods of a wave: by "zone", or by a label.
	By string

	told map[string]bool // messages
}

// WriteReport writes the report.
func (t Text) WriteReport(w io.Writer) error {
	t.told = map[string]bool{}
	lines := []string{fmt.Sprintf("%s %s/%s from %s: %s -> %s", t.Workload.Kind, t.Workload.Namespace, t.Workload.Name, formatTime(t.Began), t.From, t.To)}
	if names := t.bundleNames(); len(names) > 0 {
		lines[0] += ", with " + strings.Join(names, ", ")
	}
	last := ""
	for _, s := range t.Steps {
		head, waits := t.stepHeadline(s), t.waitLines(s)
		// A round in between is printed only if it differs from the one before.
		now := fmt.Sprint(s.Verdict, s.Reason, s.Error, s.Undecided)
		surges := s.Created > 0 && s.Pods > t.Replicas
		if s.Wave == 0 && !surges && (now == last || (s.Verdict != explain.Held && s.Error+s.Undecided == "" && len(s.Refused) == 0)) {
			continue
		}
		last = now
		lines = append(append(lines, head), waits...)
	}
	lines = append(lines, t.outcomeLines()...)
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// bundleNames returns the names of the bundles other than the built-in one.
func (t Text) bundleNames() []string {
	var out []string
	for _, id := range t.Bundles {
		if name, _, _ := strings.Cut(id, "@"); name != "builtin" {
			out = append(out, name)
		}
	}
	return out
}

func (t Text) stepHeadline(s simulation.Step) string {
	what := s.Verdict.DisplayText()
	if s.Created > 0 {
		what = fmt.Sprintf("%d created", s.Created)
	}
	if s.Wave > 0 {
		what = fmt.Sprintf("wave %d: %d moved%s", s.Wave, len(s.Moved), t.groupCounts(s.Moved))
	}
	return fmt.Sprintf("%s  %s; %d of %d available, %d updated", formatTime(s.At), what, s.Available, s.Pods, s.Updated)
}

// groupCounts says how many of the pods are in each group. Without zones it names the pods if they are
// few.
func (t Text) groupCounts(moved []simulation.UpdatedPod) string {
	in := map[string]int{}
	for _, m := range moved {
		name := m.Labels[t.By]
		if t.By == zone {
			name = m.Zone
		}
		in[name]++
	}
	if t.By == zone && in[""] == len(moved) {
		if len(moved) > 5 {
			return ""
		}
		var names []string
		for _, m := range moved {
			names = append(names, m.Name)
		}
		return " (" + strings.Join(names, ", ") + ")"
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(in)) {
		label := name
		if name == "" {
			label = "none"
		}
		out = append(out, fmt.Sprintf("%s %d", label, in[name]))
	}
	return fmt.Sprintf(" (%s %s)", t.By, strings.Join(out, ", "))
}

// waitLines says which pods wait and why, and explains each message the first time.
func (t Text) waitLines(s simulation.Step) []string {
	var out []string
	if s.Error != "" {
		out = append(out, "    failed: "+s.Error)
	}
	if s.Undecided != "" {
		out = append(out, "    no decision: "+s.Undecided)
	}
	for _, y := range s.Why {
		if y.Verdict == explain.Moved || y.Verdict == explain.Updating {
			continue
		}
		out = append(append(out, "    "+y.DisplayText()+budgetOf(s, y)), t.explainOnce(y.Message)...)
	}
	return append(out, t.refusalLines(s)...)
}

// refusalLines reports refused writes that no pod's reason shows: those about pods that are to be
// deleted anyway.
func (t Text) refusalLines(s simulation.Step) []string {
	type cause struct{ write, budget, rule, reason string }
	counts := map[cause]int{}
	var causes []cause
	first := map[cause]string{}
	for _, r := range s.Refused {
		if slices.ContainsFunc(s.Why, func(y explain.ReasonCount) bool { return y.Rule == r.Rule && y.Reason == r.Reason }) {
			continue
		}
		c := cause{r.Write, r.Budget, r.Rule, r.Reason}
		if counts[c]++; counts[c] == 1 {
			causes, first[c] = append(causes, c), r.Message
		}
	}
	var out []string
	for _, c := range causes {
		line := fmt.Sprintf("    refused to %s %d: %s, rule %s", c.write, counts[c], c.reason, c.rule)
		if c.budget != "" {
			line += ", budget " + c.budget
		}
		out = append(append(out, line), t.explainOnce(first[c])...)
	}
	return out
}

// budgetOf names the budget that refused the pods of a tally.
func budgetOf(s simulation.Step, y explain.ReasonCount) string {
	for _, r := range s.Refused {
		if r.Budget != "" && r.Rule == y.Rule && r.Reason == y.Reason {
			return ", budget " + r.Budget
		}
	}
	return ""
}

// explainOnce explains a message the first time.
func (t Text) explainOnce(message string) []string {
	if t.told[message] {
		return nil
	}
	t.told[message] = true
	return []string{"      " + message}
}

func (t Text) outcomeLines() []string {
	var out []string
	took, waves, last := t.TotalDuration(), "wave", t.Steps[len(t.Steps)-1]
	if t.Waves != 1 {
		waves = "waves"
	}
	counts := fmt.Sprintf("%d of %d available, %d updated", last.Available, last.Pods, last.Updated)
	switch t.End.How {
	case simulation.Done:
		out = append(out, fmt.Sprintf("done at %s, after %s in %d %s; %s", formatTime(t.End.At), took, t.Waves, waves, counts))
	case simulation.Stopped:
		out = append(out, fmt.Sprintf("stopped at %s, after %s in %d %s; %s", formatTime(t.End.At), took, t.Waves, waves, counts))
	default:
		out = append(out, fmt.Sprintf("stuck since %s, after %d %s; %s", formatTime(*t.End.Since), t.Waves, waves, counts))
		out = append(out, "    "+last.Message)
		for _, y := range last.Why {
			out = append(out, "    "+y.DisplayText()+budgetOf(last, y)+", such as "+y.Pod)
			if y.Message != last.Message {
				out = append(out, "      "+y.Message)
			}
		}
	}
	if len(t.Violations) == 0 {
		return append(out, "no promise was broken")
	}
	for _, v := range t.Violations {
		out = append(out, fmt.Sprintf("BROKEN at %s: to %s pod %s %s", formatTime(v.At), v.Write, v.Pod, v.Message))
	}
	return out
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
