// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// WriteBeside writes pods for a change of a kind beside the update, such as a reset. It evaluates plan and rank: which of the candidates may
// be disrupted now, as many as maxUnavailable allows beside the busy pods. It also checks the budget of each. A hold is reported
// as a hold of the update, and so is a refusal by a budget, which is checked again soon. It reports whether a write was begun.
func (r *Round) WriteBeside(ctx context.Context, f *Facts, candidate, busy func(*facts.Pod) bool, write func(*facts.Pod) error) (bool, error) {
	p := r.placesBeside(ctx, f, candidate, busy)
	if p == nil {
		return false, nil
	}
	var acted atomic.Bool
	var errs []error
	for began, again := r.c.Now(), true; again; again = r.regainPlaces(p, &r.spared, began) {
		var taken []types.NamespacedName
		taken, r.beside.Skipped = p.takePods()
		acts := make([]func() error, len(taken))
		for i, pod := range taken {
			acts[i] = func() error {
				if may, err := r.mayUpdate(ctx, p.pods[pod], true, &r.spared); err != nil || !may { // does not stop the writes of other pods
					return err
				}
				acted.Store(true)
				err := write(p.pods[pod])
				r.spared.recordDenial(pod, err)
				return err
			}
		}
		errs = append(errs, r.RunParallel(acts))
	}
	return acted.Load(), message.JoinErrors(errs...)
}

// placesBeside evaluates plan and rank for the candidates of WriteBeside. It returns the places that they may have, nil if there are none.
func (r *Round) placesBeside(ctx context.Context, f *Facts, candidate, busy func(*facts.Pod) bool) *places {
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
	plan, rec := EvaluatePoint(ctx, r, f, points.PlanPoint(), in)
	r.beside = &Decisions{Looked: true, Plan: &rec, Holds: wholeFirst(plan.Holds)}
	for _, h := range r.beside.Holds {
		r.requeueForHold(h)
	}
	limits := selection.ClampPlan(in, plan)
	if slices.ContainsFunc(r.beside.Holds, decision.Hold.IsWholeWorkload) || limits.Limit == 0 {
		r.beside.Skipped = skipAll(candidates, r.beside.Holds)
		return nil
	}
	order := r.orderCandidates(ctx, f, plan, in, candidate)
	for i := range order.candidates {
		order.candidates[i].Available = !busy(order.pods[order.candidates[i].Pod])
	}
	return r.newPlaces(order, r.beside.Holds, limits, un, &r.memory.passedBeside)
}

// orBeside returns the decisions about the update, or, if nothing is to be updated, those of WriteBeside.
func (r *Round) orBeside(d Decisions) Decisions {
	if d.Plan == nil && r.beside != nil {
		return *r.beside
	}
	return d
}
