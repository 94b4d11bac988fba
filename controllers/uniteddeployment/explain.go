// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/whatif"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/placement"
	"github.com/regatta-sh/regatta/engine/record"
)

// explanation explains the last allocation of a UnitedDeployment.
type explanation struct {
	subject decision.Subject
	engine  *engine.Engine
	now     time.Time
	a       allocated
	counts  []int
	// children are the names of the workloads, by subset.
	children map[string]string
}

// storeExplanation keeps the decision, so that users can ask for its explanation.
func (t *reconcileRound) storeExplanation(a allocated) {
	e := &explanation{subject: decisionSubject(t.d), engine: t.r.Engine, now: t.now, a: a, counts: a.out.PermittedReplicas(a.in), children: map[string]string{}}
	for _, p := range t.parts {
		if p.child != nil {
			e.children[p.Name] = p.child.GetName()
		}
	}
	t.r.Rounds.PutRound(e.subject, e)
}

// ExplainWorkload implements explain.Round.
func (e *explanation) ExplainWorkload() explain.Answer {
	a := explain.Answer{
		Subject: e.subject, Workload: e.subject, Decided: e.now, Policies: e.a.record.Revision, Bundles: e.a.record.Bundles,
		Rules: e.a.record.Rules, Outcome: e.a.record.Outcome, Error: e.a.record.Error,
		Verdict: explain.Placed, Reason: e.a.in.Strategy, Message: e.describeTotal(),
		Basis: &whatif.Basis{Engine: e.engine, Records: []decision.Record{e.a.record}},
	}
	for i, s := range e.a.in.Subsets {
		a.Subsets = append(a.Subsets, e.explainSubset(i, s))
	}
	for _, h := range e.a.out.Holds {
		a.Others = append(a.Others, decision.Hold{Rule: h.Rule, Reason: h.Reason, Message: h.Message, Until: h.Until})
	}
	if h := e.a.held; h != nil {
		a.Verdict, a.Reason, a.Message, a.Rule, a.Until = explain.Held, h.Reason, h.Message, h.Rule, h.Until
	}
	return a
}

func (e *explanation) describeTotal() string {
	sum := 0
	for _, n := range e.counts {
		sum += n
	}
	if e.a.in.Replicas == nil {
		return fmt.Sprintf("Its %d subsets get %d pods.", len(e.counts), sum)
	}
	return fmt.Sprintf("Its %d subsets get %d pods for %d replicas.", len(e.counts), sum, *e.a.in.Replicas)
}

// explainSubset explains how many pods a subset gets, and by which rule.
func (e *explanation) explainSubset(i int, s placement.Subset) explain.Subset {
	out := explain.Subset{Name: s.Name, Replicas: e.counts[i], Ready: &s.Ready}
	for _, share := range e.a.out.Subsets {
		if share.Name == s.Name {
			out.Rule = share.Rule
		}
	}
	var why []string
	if h := e.a.out.HeldAt(s.Name); h != nil {
		out.Rule = h.Rule
		why = append(why, trimPeriod(h.Message))
	} else if d := e.a.out.DeniedAt(s.Name); d != nil && e.counts[i] >= ptr.Deref(d.Room, 0) { // it has as many as it may get
		out.Rule = d.Rule
		why = append(why, trimPeriod(d.Message))
	}
	switch {
	case s.Given != nil && e.a.in.Strategy == placement.Fixed:
		why = append(why, fmt.Sprintf("it is to have %d", *s.Given))
	case e.a.in.Strategy == placement.Fixed:
		why = append(why, "an even share of what is left")
	case s.Max != nil:
		why = append(why, fmt.Sprintf("at least %d, at most %d", s.Min, *s.Max))
	default:
		why = append(why, fmt.Sprintf("at least %d", s.Min))
	}
	if s.Unschedulable {
		why = append(why, "its pods find no node")
	}
	if s.Reserved > 0 {
		why = append(why, fmt.Sprintf("others stand in for %d", s.Reserved))
	}
	out.Message = strings.Join(why, "; ")
	return out
}

// trimPeriod removes the period from a sentence that another one follows.
func trimPeriod(sentence string) string { return strings.TrimSuffix(sentence, ".") }

// ExplainPlacement implements explain.RoundWithPlacements.
func (e *explanation) ExplainPlacement(pod string) (explain.Answer, bool) {
	for i, s := range e.a.in.Subsets {
		name := e.children[s.Name]
		if name == "" || !strings.HasPrefix(pod, name+"-") {
			continue
		}
		part := e.explainSubset(i, s)
		a := e.ExplainWorkload()
		a.Subject = decision.Subject{Kind: "Pod", Namespace: e.subject.Namespace, Name: pod}
		a.Verdict, a.Reason, a.Rule = explain.Placed, "Subset", part.Rule
		a.Message = fmt.Sprintf("It is in subset %s of UnitedDeployment %s, which gets %d pods: %s.", s.Name, e.subject.Name, part.Replicas, part.Message)
		a.Subsets, a.Basis = nil, nil // they are about the other subsets too
		return a, true
	}
	return explain.Answer{}, false
}

// ExplainPod implements explain.Round: the workloads of the subsets explain their pods.
func (e *explanation) ExplainPod(string, string) (explain.Answer, bool) {
	return explain.Answer{}, false
}

// ExplainPods implements explain.Round.
func (e *explanation) ExplainPods() []explain.Answer { return nil }

// CountBytes implements explain.Round.
func (e *explanation) CountBytes() int {
	n := 1<<10 + record.MemorySize(e.a.record) + record.MemorySize(decision.Record{Input: e.a.in, Output: e.a.out})
	for subset, child := range e.children {
		n += 64 + len(subset) + len(child)
	}
	return n + 8*len(e.counts)
}
