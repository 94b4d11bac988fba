// Package simulate reads or makes up a fleet to simulate a rollout of, and tells
// how the rollout went.
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

// Text tells a report to people.
type Text struct {
	simulation.Report
	// By groups the pods of a wave: by "zone", or by a label.
	By string

	told map[string]bool // messages
}

// Print writes it.
func (t Text) Print(w io.Writer) error {
	t.told = map[string]bool{}
	lines := []string{fmt.Sprintf("%s %s/%s from %s: %s -> %s", t.Workload.Kind, t.Workload.Namespace, t.Workload.Name, clock(t.Began), t.From, t.To)}
	if names := t.names(); len(names) > 0 {
		lines[0] += ", with " + strings.Join(names, ", ")
	}
	last := ""
	for _, s := range t.Steps {
		head, waits := t.head(s), t.waits(s)
		// A round in between is told of only if it tells anything new.
		now := fmt.Sprint(s.Verdict, s.Reason, s.Error, s.Undecided)
		surges := s.Created > 0 && s.Pods > t.Replicas
		if s.Wave == 0 && !surges && (now == last || (s.Verdict != explain.Held && s.Error+s.Undecided == "")) {
			continue
		}
		last = now
		lines = append(append(lines, head), waits...)
	}
	lines = append(lines, t.end()...)
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// names are the bundles besides the built-in one.
func (t Text) names() []string {
	var out []string
	for _, id := range t.Bundles {
		if name, _, _ := strings.Cut(id, "@"); name != "builtin" {
			out = append(out, name)
		}
	}
	return out
}

func (t Text) head(s simulation.Step) string {
	what := s.Verdict.Words()
	if s.Created > 0 {
		what = fmt.Sprintf("%d created", s.Created)
	}
	if s.Wave > 0 {
		what = fmt.Sprintf("wave %d: %d moved%s", s.Wave, len(s.Moved), t.groups(s.Moved))
	}
	return fmt.Sprintf("%s  %s; %d of %d available, %d updated", clock(s.At), what, s.Available, s.Pods, s.Updated)
}

// groups says how many of the pods are in which group; where there are no zones,
// it names the pods if they are few.
func (t Text) groups(moved []simulation.Moved) string {
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

// waits says who waits and why, and what it means the first time.
func (t Text) waits(s simulation.Step) []string {
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
		out = append(out, "    "+y.Words())
		if !t.told[y.Message] {
			t.told[y.Message] = true
			out = append(out, "      "+y.Message)
		}
	}
	return out
}

func (t Text) end() []string {
	var out []string
	took, waves, last := t.Took(), "wave", t.Steps[len(t.Steps)-1]
	if t.Waves != 1 {
		waves = "waves"
	}
	counts := fmt.Sprintf("%d of %d available, %d updated", last.Available, last.Pods, last.Updated)
	switch t.End.How {
	case simulation.Done:
		out = append(out, fmt.Sprintf("done at %s, after %s in %d %s; %s", clock(t.End.At), took, t.Waves, waves, counts))
	case simulation.Stopped:
		out = append(out, fmt.Sprintf("stopped at %s, after %s in %d %s; %s", clock(t.End.At), took, t.Waves, waves, counts))
	default:
		out = append(out, fmt.Sprintf("stuck since %s, after %d %s; %s", clock(*t.End.Since), t.Waves, waves, counts))
		out = append(out, "    "+last.Message)
		for _, y := range last.Why {
			out = append(out, "    "+y.Words()+", such as "+y.Pod)
			if y.Message != last.Message {
				out = append(out, "      "+y.Message)
			}
		}
	}
	if len(t.Violations) == 0 {
		return append(out, "no promise was broken")
	}
	for _, v := range t.Violations {
		out = append(out, fmt.Sprintf("BROKEN at %s: to %s pod %s %s", clock(v.At), v.Write, v.Pod, v.Message))
	}
	return out
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
