// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"slices"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// SelectPods asks plan and rank which of some pods may be disrupted now by what a kind does to pods beside the update, as
// many as maxUnavailable has room for beside those that are busy. What holds them is reported as a hold of the update.
func (r *Round) SelectPods(ctx context.Context, f *Facts, candidate, busy func(*facts.Pod) bool) (out []*facts.Pod) {
	var candidates []*facts.Pod
	un := selection.Unavailable{}
	for _, p := range f.Pods {
		if candidate(p) {
			candidates = append(candidates, p)
		}
		if busy(p) {
			un.Total, un.AtTarget = un.Total+1, un.AtTarget+1
		}
	}
	in := f.PlanInput()
	in.Update, in.MaxUnavailable = len(candidates), f.Strategy.MaxUnavailable
	plan, rec := Ask(ctx, r, f, points.PlanPoint(), in)
	d := Decisions{Looked: true, Plan: &rec, Holds: wholeFirst(plan.Holds)}
	for _, h := range d.Holds {
		r.until(h)
	}
	limits := selection.Clamp(in, plan)
	if slices.ContainsFunc(d.Holds, decision.Hold.Whole) || limits.Limit == 0 {
		d.Skipped = skipAll(candidates, d.Holds)
		r.beside = &d
		return nil
	}
	order := r.order(ctx, f, plan, in, candidate)
	for i := range order.candidates {
		order.candidates[i].Available = !busy(order.pods[order.candidates[i].Pod])
	}
	taken, skipped := selection.Walk(order.candidates, d.Holds, limits, un)
	d.Skipped = skipped
	r.beside = &d
	for _, pod := range taken {
		out = append(out, order.pods[pod])
	}
	return out
}

// orBeside are the decisions about the update, or those about what a kind does beside it where nothing is to be updated.
func (r *Round) orBeside(d Decisions) Decisions {
	if d.Plan == nil && r.beside != nil {
		return *r.beside
	}
	return d
}
