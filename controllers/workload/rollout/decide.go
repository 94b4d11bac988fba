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

// Decisions are the decisions about which pods of a workload to move.
type Decisions struct {
	// Looked is false in a round that did not evaluate the update, because it scaled or failed before.
	Looked bool
	// Plan is the record of rollout/plan, nil if it was not evaluated.
	Plan *decision.Record
	// Holds are the holds of the plan, those of the whole workload first.
	Holds []decision.Hold
	// Take are the pods to move now. Skipped are the other candidates, with the reasons.
	Take    []Move
	Skipped []selection.Skip
	// Limited is the first hold of pods that are not recreated because of a RecreateLimiter, nil if there is none.
	Limited *decision.Hold
	// LimitAsked is true if a RecreateLimiter was called.
	LimitAsked bool
	// updates is what may be taken in place of pods that are refused. It is nil if nothing may, and after the pods
	// were moved.
	updates *updates
}

// Move is a pod to move, and how.
type Move struct {
	Pod    *facts.Pod
	Change Change
}

// decideMoves decides which pods are moved now: as many as plan, rank and clamp allow (CS-08 to
// CS-12).
func (r *Round) decideMoves(ctx context.Context, f *Facts) (Decisions, error) {
	d := Decisions{Looked: true}
	if f.Difference.Update == 0 {
		return d, nil
	}
	in := f.PlanInput()
	plan, rec := EvaluatePoint(ctx, r, f, points.PlanPoint(), in)
	d.Plan, d.Holds = &rec, wholeFirst(plan.Holds)
	for _, h := range d.Holds {
		r.requeueForHold(h)
	}
	walkFrom, recreating := f.countUnavailable()
	limits := selection.ClampPlan(in, plan)
	limits.Limit = max(limits.Limit-recreating, 0)
	if slices.ContainsFunc(d.Holds, decision.Hold.IsWholeWorkload) || limits.Limit == 0 {
		d.Skipped = skipAll(f.candidatePods(), d.Holds)
		return d, nil
	}
	order := r.orderCandidates(ctx, f, plan, in, f.IsCandidate)
	u := &updates{places: r.newPlaces(order, d.Holds, limits, walkFrom, &r.memory.passedByUpdate), changes: &changeDecisions{r: r, f: f, known: map[podChange]Change{}}, room: recreations{f: f, un: walkFrom}}
	if err := u.changes.resolveClaimChanges(ctx, &u.orderedCandidates); err != nil {
		return d, err
	}
	if err := u.changes.holdRoomless(ctx, &u.orderedCandidates, &u.room); err != nil {
		return d, err
	}
	u.holdUnrecreated(ctx, &d)
	if _, ok := f.kind.(KindWithSharedPods); ok { // pods of other kinds all belong to the same workload
		d.updates = u
	}
	_, err := u.takeMoves(ctx, &d)
	return d, err
}

// recreations counts the pods that are taken, to bound how many may be unavailable while pods are
// recreated.
type recreations struct {
	f  *Facts
	un selection.Unavailable
}

// takeIfRoom counts a pod and returns true, unless the pod is to be recreated and there is no room for that.
func (r *recreations) takeIfRoom(p *facts.Pod, recreate bool) bool {
	if most := r.f.Difference.MaxRecreated; recreate && most > 0 && (r.un.AtTarget >= most || r.wouldStayAway(p)) {
		return false
	}
	r.un.AtTarget++
	if r.f.IsSteady(p) {
		r.un.Total++
	}
	return true
}

// wouldStayAway reports whether a pod would not be created again for now. As in a walk, an unavailable pod
// uses up no more room than before. But it has to be created again, so the pods that scaling handles before it must
// leave room for it.
func (r *recreations) wouldStayAway(p *facts.Pod) bool {
	most := r.f.Difference.MaxRecreated
	if r.f.IsSteady(p) {
		return r.un.Total >= most
	}
	return r.f.Difference.UnavailableBefore(p) >= most
}

// holdRoomless holds, before the walk, the candidates that would not be created again, so that they use up no room. Otherwise
// the walk would not reach the pods that they wait for, and each would wait for the other.
func (c *changeDecisions) holdRoomless(ctx context.Context, o *orderedCandidates, room *recreations) error {
	if c.f.Difference.MaxRecreated == 0 {
		return nil
	}
	for i := range o.candidates {
		one := &o.candidates[i]
		p := o.pods[one.Pod]
		if one.Hold != nil || !room.wouldStayAway(p) {
			continue
		}
		change, err := c.evaluatePod(ctx, p)
		if err != nil {
			return err
		}
		if change.Action == points.Recreate {
			hold := roomlessHold()
			one.Hold = &hold
		}
	}
	return nil
}

// roomlessHold returns the hold of a pod that would not be created again.
func roomlessHold() decision.Hold {
	return decision.Hold{
		Rule: decision.RuleWalk, Reason: selection.ReasonMaxUnavailable,
		Message: "As many pods are unavailable as scaleStrategy.maxUnavailable lets be created at once; this one would stay away, so it waits for them.",
	}
}

// skipAll returns for each candidate the hold of the whole workload.
func skipAll(candidates []*facts.Pod, holds []decision.Hold) []selection.Skip {
	if len(holds) == 0 {
		return nil
	}
	out := make([]selection.Skip, len(candidates))
	for i, p := range candidates {
		out[i] = selection.Skip{Pod: p.Key(), Hold: holds[0]}
	}
	return out
}

// wholeFirst puts the holds of the whole workload before those of some of its pods,
// since they are the most important for a user.
func wholeFirst(holds []decision.Hold) []decision.Hold {
	partial := func(h decision.Hold) int {
		if h.IsWholeWorkload() {
			return 0
		}
		return 1
	}
	return slices.SortedStableFunc(slices.Values(holds), func(a, b decision.Hold) int { return partial(a) - partial(b) })
}
