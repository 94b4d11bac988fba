// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// RecreateLimiter is a Kind that creates a pod to recreate another one, so that bounds for the creation of pods bound its updates.
type RecreateLimiter interface {
	// LimitRecreations returns how many of some pods may be recreated now: the first ones. The pods are in the order of the candidates. It is
	// called once per round, before any pod is moved. held returns why another pod is not recreated; it is nil if there is no limit.
	LimitRecreations(ctx context.Context, r *Round, f *Facts, pods []*facts.Pod) (allowed int, held func(*facts.Pod) decision.Hold)
}

// SurgeLimitedReason is the reason of pods that wait because rollout/scale allows no more surge and gives no reason of its own.
const SurgeLimitedReason = "SurgeLimited"

// HoldOfSurge returns the hold because of which an answer of rollout/scale allows no pod beside another one: the first hold that applies to that
// pod, holds of users first.
func HoldOfSurge(out points.ScaleOutput, p *facts.Pod) decision.Hold {
	for _, own := range []bool{true, false} {
		for _, h := range out.Holds {
			if isUserHold(h) == own && holdMatchesPod(h, p) {
				return h.OfPod(p.Namespace, p.Name)
			}
		}
	}
	return decision.Hold{
		Rule: string(points.ScalePoint().Name), Reason: SurgeLimitedReason,
		Message: "The policy lets no more pods be created beside those that they replace; this one waits.",
	}.OfPod(p.Namespace, p.Name)
}

// holdUnrecreated holds the candidates that the kind does not allow to be recreated now. They use up no room, so that a pod that is changed in
// place may be taken instead. But no other pod is recreated in place of a held one.
func (u *updates) holdUnrecreated(ctx context.Context, d *Decisions) {
	c := u.changes
	limiter, ok := c.r.c.kind.(RecreateLimiter)
	if !ok {
		return
	}
	taken, _ := selection.WalkCandidates(u.candidates, u.holds, u.limits, u.un)
	var recreated []*facts.Pod
	for _, pod := range taken {
		if p := u.pods[pod]; c.isRecreated(ctx, p) {
			recreated = append(recreated, p)
		}
	}
	u.mayRecreate = map[*facts.Pod]bool{} // pods that turn out to need recreation later were not passed to the limiter
	if len(recreated) == 0 {
		return
	}
	allowed, held := limiter.LimitRecreations(ctx, c.r, c.f, recreated)
	d.LimitAsked = true
	if held == nil {
		u.mayRecreate = nil
		return
	}
	for _, p := range recreated[:min(max(allowed, 0), len(recreated))] {
		u.mayRecreate[p] = true
	}
	if allowed >= len(recreated) {
		return
	}
	first := held(recreated[max(allowed, 0)])
	d.Limited = &first
	for i := range u.candidates {
		one := &u.candidates[i]
		if p := u.pods[one.Pod]; one.Hold == nil && !u.mayRecreate[p] && c.isRecreated(ctx, p) {
			hold := held(p)
			one.Hold = &hold
		}
	}
}

// isRecreated reports whether a move recreates a candidate. If the change cannot be evaluated, the candidate is not moved at all.
func (c *changeDecisions) isRecreated(ctx context.Context, p *facts.Pod) bool {
	change, err := c.evaluatePod(ctx, p)
	return err == nil && change.Action == points.Recreate
}
