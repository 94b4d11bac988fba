// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

// text writes answers for people.
type text struct {
	now        time.Time
	width      int
	paint      func(explain.Verdict, string) string
	all        bool
	conditions []kinds.Condition
	lines      []string
}

// column is the column of the values: after the longest name.
const column = 16

func (t text) renderReply(reply explain.Reply) string {
	a := reply.Answer
	verdict := t.paint(a.Verdict, strings.ToUpper(a.Verdict.DisplayText()))
	if a.Request != nil {
		t.lines = append(t.lines, fmt.Sprintf("%s of %s was %s (%s)", operationText(a.Request), subjectText(a.Subject), verdict, a.Reason))
	} else {
		t.lines = append(t.lines, fmt.Sprintf("%s is %s (%s)", subjectText(a.Subject), verdict, a.Reason))
	}
	for _, l := range wrapText(a.Message, t.width-2) {
		t.lines = append(t.lines, "  "+l)
	}
	t.lines = append(t.lines, "")
	t.writePods(a)
	t.writeNodes(a.Nodes)
	t.writeRule(a)
	if p := reply.Placed; p != nil {
		t.writeRow("subset", p.Message)
		if p.Rule != "" {
			t.writeRow("", "rule "+p.Rule)
		}
	}
	for i := range reply.Sidecars {
		a := &reply.Sidecars[i]
		t.writeRow("sidecars", fmt.Sprintf("%s is %s (%s): %s", subjectText(a.Workload), a.Verdict.DisplayText(), a.Reason, a.Message))
		if a.Rule != "" && a.Rule != decision.RuleWalk {
			t.writeRow("", "rule "+a.Rule)
		}
	}
	for i := range reply.Lacks {
		t.writeRow("lacks", subjectText(reply.Lacks[i].Workload)+": "+reply.Lacks[i].Message)
	}
	t.writeRequest(a.Request)
	t.writeRow("revision", formatRevisions(a))
	if a.Workload != a.Subject {
		t.writeRow("workload", subjectText(a.Workload))
	}
	t.writeRow("may change", t.mayChange(a))
	t.writeOtherHolds(a)
	t.writeConditions(a)
	t.writeFacts(a.Facts)
	t.writeNearest(a.Nearest)
	if t.all && len(a.Rules) > 0 {
		t.writeRow("rules", strings.Join(a.Rules, ", "))
	}
	if a.Outcome != "" && a.Outcome != decision.Decided {
		t.writeRow("no decision", fmt.Sprintf("%s: %s. What holds is the fallback.", a.Outcome, strings.TrimSuffix(a.Error, ".")))
	}
	t.writeRow("decided", t.decidedText(a))
	if len(a.Subsets) > 0 {
		t.writeSubsets(a.Subsets)
	}
	if len(reply.Pods) > 0 {
		t.writePodTable(reply.Pods)
	}
	if len(reply.Refusals) > 0 {
		t.writeRefusals(reply.Refusals)
	}
	t.writeWhatIf(a.WhatIf)
	return strings.Join(t.lines, "\n") + "\n"
}

// writeOtherHolds prints the holds other than the first. The holds of a workload's pods are printed
// above, with the number of pods.
func (t *text) writeOtherHolds(a explain.Answer) {
	name := "also held by"
	for _, h := range a.Others {
		if slices.ContainsFunc(a.Why, func(y explain.ReasonCount) bool { return y.Message == h.Message }) {
			continue
		}
		t.writeRow(name, fmt.Sprintf("%s (%s): %s", h.Rule, h.Reason, h.Message))
		name = ""
	}
}

// writeConditions prints the conditions, with their messages unless these were printed above.
func (t *text) writeConditions(a explain.Answer) {
	name := "conditions"
	for _, c := range t.conditions {
		line := fmt.Sprintf("%s=%s for %s (%s)", c.Type, c.Status, duration.HumanDuration(t.now.Sub(c.LastTransitionTime.Time)), c.Reason)
		known := slices.ContainsFunc(a.Why, func(y explain.ReasonCount) bool { return y.Reason == c.Reason })
		if c.Message != "" && !known && c.Reason != a.Reason {
			line += ": " + c.Message
		}
		t.writeRow(name, line)
		name = ""
	}
}

// writeRow adds a name and its value, wrapped; nothing if there is no value.
func (t *text) writeRow(name, value string) {
	if value == "" {
		return
	}
	for _, l := range wrapText(value, t.width-column) {
		t.lines = append(t.lines, fmt.Sprintf("  %-*s%s", column-2, name, l))
		name = ""
	}
}

func (t *text) writeRule(a explain.Answer) {
	if a.Rule == "" || a.Rule == decision.RuleWalk {
		return
	}
	rule := a.Rule
	if a.Title != "" {
		rule += " - " + a.Title
	}
	t.writeRow("rule", rule)
	if a.Place != "" {
		t.writeRow("", fmt.Sprintf("%s, bundle %s", a.Place, bundle.ShortID(a.Bundle)))
	}
}

// writePods prints how many pods of a workload have each verdict, why, and the progress of each zone.
func (t *text) writePods(a explain.Answer) {
	var counts []string
	for _, v := range explain.PodVerdicts() {
		if n := a.Pods[v]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, v.DisplayText()))
		}
	}
	t.writeRow("pods", strings.Join(counts, ", "))
	name := "because"
	for _, y := range a.Why {
		t.writeRow(name, y.DisplayText()+", such as "+y.Pod)
		for _, l := range wrapText(y.Message, t.width-column-2) {
			t.writeRow("", "  "+l)
		}
		name = ""
	}
	zones := a.Groups["zone"]
	if len(zones) < 2 && zones[""] != (rollout.Group{}) {
		return // nodes are in no zones
	}
	var out []string
	for _, name := range sortedKeys(zones) {
		g := zones[name]
		line := fmt.Sprintf("%s %d/%d updated", orNone(name), g.Updated, g.Total)
		if g.Unavailable > 0 {
			line += fmt.Sprintf(", %d unavailable", g.Unavailable)
		}
		out = append(out, line)
	}
	t.writeRow("zones", strings.Join(out, "; "))
}

// writeNodes prints the nodes whose pods are not up to date.
func (t *text) writeNodes(all []explain.Node) {
	name := "nodes"
	for _, n := range all {
		t.writeRow(name, n.Name+" "+n.DisplayText())
		name = ""
	}
}

func formatRevisions(a explain.Answer) string {
	if a.From == a.To || a.From == "" {
		return a.To
	}
	return a.From + " -> " + a.To
}

// mayChange says when the passing of time alone may change the answer. Otherwise a policy's hold
// changes only with the facts that the policy reads.
func (t *text) mayChange(a explain.Answer) string {
	if at, err := time.Parse(time.RFC3339, a.Until); err == nil {
		if left := at.Sub(t.now); left > 0 {
			return fmt.Sprintf("at %s (in %s)", a.Until, duration.HumanDuration(left))
		}
		return fmt.Sprintf("at %s, which is past; it is about to be decided again", a.Until)
	}
	if a.Verdict == explain.Held {
		return "when the facts below do"
	}
	return ""
}

func (t *text) writeFacts(all []explain.Fact) {
	var short []string
	for i, f := range all {
		f.Value = factText(f.Name, f.Value)
		all[i] = f
		short = append(short, f.Name+"="+strings.ReplaceAll(f.Value, `"`, ""))
	}
	t.writeRow("facts", strings.Join(short, "  "))
}

// factText is the value of a fact for people: a time that is in nanoseconds is written as a time.
func factText(name, value string) string {
	if ns, err := strconv.ParseInt(value, 10, 64); name == "now" && err == nil {
		return time.Unix(0, ns).UTC().Format(time.RFC3339)
	}
	return value
}

func (t *text) decidedText(a explain.Answer) string {
	out := fmt.Sprintf("%s ago", duration.HumanDuration(t.now.Sub(a.Decided)))
	if a.Replica != "" {
		out += " by " + a.Replica
	}
	return out + ", policies " + bundle.ShortRevision(a.Policies)
}

func (t *text) writePodTable(pods []explain.Answer) {
	rows := [][]string{{"POD", "VERDICT", "REASON", "REVISION", "RULE"}}
	for _, p := range pods {
		rule := p.Rule
		if rule == decision.RuleWalk {
			rule = ""
		}
		rows = append(rows, []string{p.Subject.Name, p.Verdict.DisplayText(), p.Reason, p.From, rule})
	}
	t.writeTable(rows)
}

// writeSubsets prints the subsets of a UnitedDeployment or a WorkloadSpread, a line each. The column READY is there only
// if ready pods are counted.
func (t *text) writeSubsets(all []explain.Subset) {
	counted := slices.ContainsFunc(all, func(s explain.Subset) bool { return s.Ready != nil })
	row := func(name, pods, ready, rule, because string) []string {
		if !counted {
			return []string{name, pods, rule, because}
		}
		return []string{name, pods, ready, rule, because}
	}
	rows := [][]string{row("SUBSET", "PODS", "READY", "RULE", "BECAUSE")}
	for _, s := range all {
		ready := ""
		if s.Ready != nil {
			ready = strconv.Itoa(*s.Ready)
		}
		rows = append(rows, row(s.Name, strconv.Itoa(s.Replicas), ready, s.Rule, s.Message))
	}
	t.writeTable(rows)
}

// writeRefusals prints other requests that were refused, a line each.
func (t *text) writeRefusals(all []explain.Answer) {
	rows := [][]string{{"REFUSED", "OPERATION", "OBJECT", "USER", "REASON", "REQUEST"}}
	for _, a := range all {
		reason := a.Reason
		if a.Verdict == explain.Exempted {
			reason += " (exempted)"
		}
		rows = append(rows, []string{
			duration.HumanDuration(t.now.Sub(a.Decided)) + " ago", operationText(a.Request), subjectText(a.Subject), a.Request.User, reason, a.Request.UID,
		})
	}
	t.writeTable(rows)
}

// writeTable writes rows below their heads, after an empty line.
func (t *text) writeTable(rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, cell := range r {
			widths[i] = max(widths[i], len(cell))
		}
	}
	t.lines = append(t.lines, "")
	for _, r := range rows {
		line := ""
		for i, cell := range r {
			line += fmt.Sprintf("%-*s", widths[i]+2, cell)
		}
		t.lines = append(t.lines, strings.TrimRight(line, " "))
	}
}

// writeRequest says who sent the request that an answer is about.
func (t *text) writeRequest(r *explain.Request) {
	if r != nil {
		t.writeRow("asked by", r.User)
		t.writeRow("request", r.UID)
	}
}

func operationText(r *explain.Request) string {
	if r.DryRun {
		return r.Operation + " (dry run)"
	}
	return r.Operation
}

func subjectText(s decision.Subject) string {
	if s.Namespace == "" {
		return s.Kind + " " + s.Name
	}
	return fmt.Sprintf("%s %s/%s", s.Kind, s.Namespace, s.Name)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func orNone(zone string) string {
	if zone == "" {
		return "(none)"
	}
	return zone
}
