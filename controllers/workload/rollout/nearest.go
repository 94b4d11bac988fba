// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"slices"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/whatif"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/nearest"
)

// nearestChange returns a function that finds a change of facts that would have changed an answer about the workload, or
// about one of its pods. It evaluates the decision that holds it, or would.
// If nothing is held or could be, it returns nil.
func (r *explanation) nearestChange(v explain.Verdict, p *facts.Pod) func(context.Context) *nearest.Result {
	switch v {
	case explain.Held, explain.Waiting, explain.Moved, explain.Updating:
	default:
		return nil
	}
	asked, ok := r.answerRecord(p)
	if !ok {
		return nil
	}
	return func(ctx context.Context) *nearest.Result { return explain.NearestOf(ctx, r.e, asked) }
}

// answerRecord returns the record of the decision that an answer is from.
func (r *explanation) answerRecord(p *facts.Pod) (decision.Record, bool) {
	if p != nil {
		if i, ok := r.skips[p.Key()]; ok && r.skipped[i].Hold.Pod != "" {
			return r.rankRecord(p, r.skipped[i].Hold)
		}
	}
	if r.res.Plan == nil {
		return decision.Record{}, false
	}
	asked := *r.res.Plan
	if out, ok := asked.Output.(points.PlanOutput); ok && p != nil {
		asked.Output = holdsOfPod(out, p)
	}
	return asked, true
}

// rankRecord returns the decision that held a single pod as it would be made now. The
// original decision may be from an earlier round, and about other pods too.
func (r *explanation) rankRecord(p *facts.Pod, h decision.Hold) (decision.Record, bool) {
	s, subject := r.e.ActiveSnapshot(), r.f.Subject
	if s.RevisionFor(subject) != r.f.Policies {
		return decision.Record{}, false
	}
	return decision.Record{
		Point: points.RankPoint().Name, Subject: subject, Outcome: decision.Decided, Revision: r.f.Policies,
		Input:  points.RankInput{Workload: r.f.WorkloadFacts(), Strategy: r.f.Strategy, Pods: []points.PodFacts{p.Facts}},
		Output: points.RankOutput{Holds: []decision.Hold{h}},
	}, true
}

// answerBasis returns the decisions that an answer about the workload, or about one of its pods, depends on. A decision that the
// round did not make, since there was nothing to move, is made of its facts.
func (r *explanation) answerBasis(p *facts.Pod) *whatif.Basis {
	f := r.f
	plan := decision.Record{Point: points.PlanPoint().Name, Subject: f.Subject, Revision: f.Policies}
	if r.res.Plan != nil {
		plan = *r.res.Plan
	} else {
		plan.Input = f.PlanInput()
	}
	out := &whatif.Basis{Engine: r.e, Records: []decision.Record{plan}}
	if p == nil {
		return out
	}
	out.Records = append(out.Records, decision.Record{
		Point: points.RankPoint().Name, Subject: f.Subject, Revision: f.Policies,
		Input: points.RankInput{Workload: f.WorkloadFacts(), Strategy: f.Strategy, Pods: []points.PodFacts{p.Facts}},
	})
	out.Narrow = func(output any) any {
		if plan, ok := output.(points.PlanOutput); ok {
			return holdsOfPod(plan, p)
		}
		return output
	}
	return out
}

// holdsOfPod returns a plan without the holds that do not concern a pod.
func holdsOfPod(plan points.PlanOutput, p *facts.Pod) points.PlanOutput {
	plan.Holds = slices.DeleteFunc(slices.Clone(plan.Holds), func(h decision.Hold) bool { return !holdMatchesPod(h, p) })
	return plan
}
