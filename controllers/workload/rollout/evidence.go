// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/record"
)

// ruleDetails is what all answers of a round share.
type ruleDetails struct {
	counts points.Counts
	bounds []explain.Fact           // the numbers that bound any rollout
	rules  []string                 // that took part
	blamed map[string]record.Reason // details of the rules that hold
}

func (r *explanation) gatherEvidence() ruleDetails {
	f, e := r.f, r.e
	c := f.CountPods()
	ev := ruleDetails{counts: c, bounds: f.planFacts(c), rules: r.rules, blamed: map[string]record.Reason{}}
	// If the policies have changed since, places in them would be wrong. Policies of another
	// namespace do not affect this workload.
	if e.ActiveSnapshot().RevisionFor(f.Subject) != f.Policies {
		return ev
	}
	note := func(rec decision.Record) {
		for _, reason := range record.ExplainDecision(e, rec).Reasons {
			if _, ok := ev.blamed[reason.Rule]; !ok {
				ev.blamed[reason.Rule] = reason
			}
		}
	}
	if r.res.Plan != nil {
		note(*r.res.Plan)
	}
	// The holds of single pods may be remembered from an earlier round, whose
	// record is gone. The rule reads the same facts, apart from the pod.
	var single []decision.Hold
	seen := map[string]bool{}
	for i := range r.skipped {
		h := r.skipped[i].Hold
		if _, ok := ev.blamed[h.Rule]; !ok && !seen[h.Rule] && !h.IsFromWalk() {
			single, seen[h.Rule] = append(single, h), true
		}
	}
	if len(single) > 0 {
		note(decision.Record{
			Point: points.RankPoint().Name, Subject: f.Subject, Outcome: decision.Decided,
			Input:  points.RankInput{Workload: f.WorkloadFacts(), Strategy: f.Strategy},
			Output: points.RankOutput{Holds: single},
		})
	}
	return ev
}

// fillHold fills in the hold that decided, and the details of its rule.
func (r *explanation) fillHold(a *explain.Answer, h decision.Hold) {
	a.Rule, a.Reason, a.Message, a.Until = h.Rule, h.Reason, h.Message, h.Until
	known := r.evidence().blamed[h.Rule]
	a.Title, a.Bundle, a.Place = known.Title, known.Bundle, known.Place
}

// addFacts adds facts after those that the rule reads, each once.
func (r *explanation) addFacts(a *explain.Answer, more ...explain.Fact) {
	a.Facts = explain.CollectFacts(r.evidence().blamed[a.Rule].Facts,
		"pods", "count(pods)", // of the pods in the input, only the one in question matters
		"workload.kind", "workload.namespace", "workload.name") // most rules name it in their message
	for _, f := range more {
		if !slices.ContainsFunc(a.Facts, func(o explain.Fact) bool { return o.Name == f.Name }) {
			a.Facts = append(a.Facts, f)
		}
	}
}

// otherHolds returns the holds, except those with one rule and reason, of the whole workload
// or of one of its pods.
func (r *explanation) otherHolds(top decision.Hold, p *facts.Pod) []decision.Hold {
	var out []decision.Hold
	for _, h := range r.res.planAndBudgetHolds() {
		if same := h.Rule == top.Rule && h.Reason == top.Reason; !same && (p == nil || holdMatchesPod(h, p)) {
			out = append(out, h)
		}
	}
	return out
}

func holdMatchesPod(h decision.Hold, p *facts.Pod) bool {
	groups := groupsOf(p)
	for dimension, group := range h.Where {
		if groups[dimension] != group {
			return false
		}
	}
	return h.NamesPod(p.Namespace, p.Name)
}

func (f *Facts) planFacts(c points.Counts) []explain.Fact {
	n := func(name string, v int) explain.Fact { return explain.Fact{Name: name, Value: strconv.Itoa(v)} }
	return []explain.Fact{
		n("workload.replicas", f.Replicas), n("strategy.partition", f.Strategy.Partition),
		n("strategy.maxUnavailable", f.Strategy.MaxUnavailable), n("counts.updated", c.Updated),
		n("counts.available", c.Available), n("counts.unavailable", c.Unavailable),
	}
}

func podFacts(p *facts.Pod, available bool) []explain.Fact {
	out := []explain.Fact{{Name: "pod.ready", Value: strconv.FormatBool(p.Ready)}, {Name: "pod.available", Value: strconv.FormatBool(available)}}
	for name, v := range map[string]string{"pod.node": p.Facts.Node, "pod.zone": p.Facts.Zone, "pod.state": string(p.State)} {
		if v != "" {
			out = append(out, explain.Fact{Name: name, Value: v})
		}
	}
	for k, v := range p.Facts.Labels {
		out = append(out, explain.Fact{Name: "pod.labels." + k, Value: v})
	}
	for k, v := range p.Facts.NamespaceLabels {
		out = append(out, explain.Fact{Name: "pod.namespaceLabels." + k, Value: v})
	}
	slices.SortFunc(out, func(a, b explain.Fact) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
