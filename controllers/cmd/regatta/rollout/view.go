// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/engine/decision"
)

// section is a part of the view: some lines with a name.
type section struct {
	name  string
	lines []string
	// least is how many lines are kept when there is little room, and rank says
	// which section gives up lines first: the highest.
	least, rank int
}

// margin is where the lines of sections begin.
const margin = 11

// renderView renders the whole view in width columns and, unless height is 0, height lines.
func (st styles) renderView(s seen, width, height int) string {
	snap := s.snapshot
	p := *snap.state
	head := []string{
		truncateLine(st.bold.Render(snap.about.String())+" "+st.renderState(s, p), width),
		truncateLine(p.Strategy, width),
		"",
	}
	foot := []string{"", st.dim.Render(truncateLine("q quits; the rollout goes on", width))}
	if s.last {
		foot = nil
	}
	room := width - margin
	sections := fitSections([]section{
		st.renderUpdated(p, room),
		{name: "pods", lines: []string{truncateLine(podsLine(p, snap), room)}, least: 1, rank: 1},
		st.renderRevisions(snap, room),
		st.renderZones(snap, room),
		st.renderNodes(snap, room),
		st.renderTallies(snap, room),
		st.renderEvents(s, room),
		st.renderDecided(s, room),
	}, height-len(head)-len(foot)-1, height == 0) // the last line is where the cursor goes
	out := head
	for _, sec := range sections {
		name := sec.name
		for _, l := range sec.lines {
			out = append(out, st.dim.Render(fmt.Sprintf("%-*s", margin, name))+l)
			name = ""
		}
	}
	return strings.Join(append(out, foot...), "\n") + "\n"
}

// fitSections drops lines until the sections fit into the room.
func fitSections(sections []section, room int, unbounded bool) []section {
	lines := 0
	for _, s := range sections {
		lines += len(s.lines)
	}
	give := func(leave func(section) int) bool {
		most := -1
		for i, s := range sections {
			if len(s.lines) > leave(s) && (most < 0 || s.rank > sections[most].rank) {
				most = i
			}
		}
		if most >= 0 {
			sections[most].lines = sections[most].lines[:len(sections[most].lines)-1]
			lines--
		}
		return most >= 0
	}
	for !unbounded && lines > max(room, 1) {
		if !give(func(s section) int { return s.least }) && !give(func(section) int { return 0 }) {
			break
		}
	}
	return sections
}

// renderState renders the state of the rollout, in a word or two.
func (st styles) renderState(s seen, p kinds.View) string {
	a := s.snapshot.answer
	switch {
	case p.IsComplete():
		return st.good.Render("complete")
	case s.snapshot.gone:
		return st.bad.Render("deleted")
	case p.Deadline != "" && p.Observed:
		return st.bad.Render("deadline exceeded")
	case !p.Observed:
		return st.dim.Render("not seen by the manager yet")
	case a != nil && a.Verdict != explain.UpToDate:
		return st.verdictStyle(a.Verdict).Render(a.Verdict.DisplayText()) + " (" + a.Reason + ")"
	}
	return st.busy.Render("updating")
}

func (st styles) renderUpdated(p kinds.View, room int) section {
	percent := 100
	if p.Target > 0 {
		percent = 100 * min(p.Updated, p.Target) / p.Target
	}
	count := fmt.Sprintf("  %d/%d %3d%%", p.Updated, p.Target, percent)
	bar := st.progressBar(p.Done, p.Updated, p.Target, min(room-lipgloss.Width(count), 60))
	return section{name: "updated", least: 1, lines: []string{bar + count, truncateLine(fmt.Sprintf("%d of them available", p.Done), room)}}
}

func podsLine(p kinds.View, s snapshot) string {
	out := fmt.Sprintf("%d of %d, %d available", p.Pods, p.Wanted, p.Available)
	if missing := p.Pods - p.Available; missing > 0 {
		out += fmt.Sprintf(", %d not", missing)
	}
	if s.answer != nil {
		for _, f := range s.answer.Facts {
			if f.Name == "strategy.maxUnavailable" {
				out += fmt.Sprintf(" (%s may be unavailable)", f.Value)
			}
		}
	}
	return out
}

func (st styles) renderRevisions(s snapshot, room int) section {
	sec := section{name: "revisions", least: 2, rank: 4}
	for _, r := range s.revisions {
		line := fmt.Sprintf("%s  %d pods, %d ready", r.name, r.pods, r.ready)
		if r.newest {
			line += "  <- the new one"
		}
		sec.lines = append(sec.lines, truncateLine(line, room))
	}
	return sec
}

func (st styles) renderZones(s snapshot, room int) section {
	sec := section{name: "zones", least: 1, rank: 5}
	if s.answer == nil {
		return sec
	}
	zones := s.answer.Groups["zone"]
	names := slices.Sorted(maps.Keys(zones))
	longest := 0
	for _, n := range names {
		longest = max(longest, lipgloss.Width(n))
	}
	if longest == 0 {
		return sec // nodes are in no zones
	}
	for _, n := range names {
		z := zones[n]
		text := fmt.Sprintf("  %d/%d", z.Updated, z.Total)
		if z.Unavailable > 0 {
			text += fmt.Sprintf(", %d unavailable", z.Unavailable)
		}
		line := fmt.Sprintf("%-*s  ", longest, cmp.Or(n, "-"))
		bar := min(room-lipgloss.Width(line)-lipgloss.Width(text), 20)
		// How many of the unavailable pods are updated is not known; usually all are.
		sec.lines = append(sec.lines, truncateLine(line, room)+st.progressBar(max(z.Updated-z.Unavailable, 0), z.Updated, z.Total, bar)+text)
	}
	return sec
}

// renderNodes renders the nodes whose pods are not up to date, for a kind that has one pod on each node.
func (st styles) renderNodes(s snapshot, room int) section {
	sec := section{name: "nodes", least: 1, rank: 7}
	if s.answer == nil {
		return sec
	}
	longest := 0
	for _, n := range s.answer.Nodes {
		longest = max(longest, lipgloss.Width(n.Name))
	}
	for _, n := range s.answer.Nodes {
		line := truncateLine(fmt.Sprintf("%-*s  ", longest, n.Name), room)
		sec.lines = append(sec.lines, line+st.verdictStyle(n.Verdict).Render(truncateLine(n.DisplayText(), room-lipgloss.Width(line))))
	}
	return sec
}

// renderTallies renders how many pods wait, and for what.
func (st styles) renderTallies(s snapshot, room int) section {
	sec := section{name: "because", least: 2, rank: 3}
	if s.answer == nil {
		return sec
	}
	for _, y := range s.answer.Why {
		count := fmt.Sprintf("%d %s", y.Pods, y.Verdict.DisplayText())
		rest := "  " + y.Reason
		if y.Rule != "" && y.Rule != decision.RuleWalk {
			rest += ", rule " + y.Rule
		}
		sec.lines = append(sec.lines,
			st.verdictStyle(y.Verdict).Render(truncateLine(count, room))+truncateLine(rest, room-lipgloss.Width(count)),
			truncateLine("  "+y.Message, room))
	}
	return sec
}

func (st styles) renderEvents(s seen, room int) section {
	sec := section{name: "events", rank: 6}
	for _, e := range s.snapshot.events[:min(len(s.snapshot.events), 5)] {
		style := st.plain
		if e.warning {
			style = st.bad
		}
		times := ""
		if e.count > 1 {
			times = fmt.Sprintf(" x%d", e.count)
		}
		line := fmt.Sprintf("%4s  %s%s: %s", duration.HumanDuration(s.at.Sub(e.at)), e.reason, times, e.message)
		sec.lines = append(sec.lines, style.Render(truncateLine(line, room)))
	}
	return sec
}

// renderDecided renders how old the answer is, or why there is none.
func (st styles) renderDecided(s seen, room int) section {
	sec := section{name: "decided", least: 1, rank: 2}
	if a := s.snapshot.answer; a != nil {
		line := duration.HumanDuration(max(s.at.Sub(a.Decided), 0)) + " ago"
		if a.Replica != "" {
			line += " by " + a.Replica
		}
		sec.lines = append(sec.lines, truncateLine(line, room))
	}
	for _, err := range []error{s.snapshot.silence, s.snapshot.blind} {
		if err == nil {
			continue
		}
		for _, l := range strings.Split(err.Error(), "\n") {
			sec.lines = append(sec.lines, st.bad.Render(truncateLine(edit.EscapeText(l), room)))
		}
	}
	return sec
}
