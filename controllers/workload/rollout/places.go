// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// places are the candidates of a round that were not taken yet, and the room that is left for them. A pod that is taken uses up a place
// under the partition and maxUnavailable. It keeps the place whatever the result of its write is, since a write that failed may have been done.
// Only if a budget or the API server refused it, the pod was certainly not written: its place is free for the next candidate.
type places struct {
	orderedCandidates
	holds  []decision.Hold
	limits selection.Limits
	un     selection.Unavailable
	// taken is the room that each pod with a place uses up.
	taken map[types.NamespacedName]selection.Unavailable
	// passed are the refusals of earlier rounds whose turn ended, and next is where the refusals of this round are stored.
	passed refusals
	next   *refusals
}

// refusals are the refusals of pods, by the key of the pods that share a budget.
type refusals map[types.UID]refusal

// refusal is a refusal by a budget, which applies only to ready pods, or by the API server.
type refusal struct {
	hold   *decision.Hold
	denied bool
}

// holdOf returns the refusal that applies to a pod with a key; nil if there is none.
func (r refusals) holdOf(ready bool, sharing types.UID) *decision.Hold {
	if one := r[sharing]; one.denied || ready {
		return one.hold
	}
	return nil
}

// newPlaces returns the places of candidates, of which none is taken. Candidates that earlier rounds refused until their turn ended are held:
// the round begins after them, or it would never get further, and checks them again soon. next stores the refusals of this round.
func (r *Round) newPlaces(o orderedCandidates, holds []decision.Hold, limits selection.Limits, un selection.Unavailable, next *refusals) *places {
	p := &places{orderedCandidates: o, holds: holds, limits: limits, un: un, taken: map[types.NamespacedName]selection.Unavailable{}, passed: *next, next: next}
	*next = nil
	if len(p.passed) > 0 {
		r.RequeueAfter(refusedAgain)
		p.holdRefused(r, p.passed)
	}
	return p
}

// holdRefused holds the candidates that probably share a budget with refused ones.
func (p *places) holdRefused(r *Round, refused refusals) {
	for i := range p.candidates {
		if c := &p.candidates[i]; c.Hold == nil {
			pod := p.pods[c.Pod]
			c.Hold = refused.holdOf(pod.Ready, r.sharesBudget(pod))
		}
	}
}

// takePods takes as many candidates as there is room for, in their order, and removes them from the candidates.
func (p *places) takePods() (taken []types.NamespacedName, skipped []selection.Skip) {
	taken, skipped = selection.WalkCandidates(p.candidates, p.holds, p.limits, p.un)
	now := make(map[types.NamespacedName]bool, len(taken))
	for _, pod := range taken {
		now[pod] = true
	}
	left := make([]selection.Candidate, 0, len(p.candidates)-len(taken))
	for _, c := range p.candidates {
		if !now[c.Pod] {
			left = append(left, c)
			continue
		}
		p.taken[c.Pod] = p.limits.CountUse(c)
		p.useRoom(p.taken[c.Pod], 1)
	}
	p.candidates = left
	return taken, skipped
}

// useRoom uses up the room of a pod; it frees the room if times is -1.
func (p *places) useRoom(room selection.Unavailable, times int) {
	p.limits.Limit -= times
	p.un.Total += times * room.Total
	p.un.AtTarget += times * room.AtTarget
}

// freeRefused frees the places of pods that were refused since the last call, and reports whether there are any. Other pods of
// their workloads get none of these places, since they would probably be refused as well.
func (p *places) freeRefused(r *Round, k *keptPods) bool {
	freed := false
	for _, s := range slices.Concat(k.refused, k.denied) {
		room, ok := p.taken[s.Pod]
		if !ok { // the place was freed before, or the pod had none
			continue
		}
		freed = true
		delete(p.taken, s.Pod)
		p.useRoom(room, -1)
	}
	if !freed {
		return false
	}
	p.holdRefused(r, p.listRefusals(r, k))
	return true
}

// listRefusals returns the refusals of this round.
func (p *places) listRefusals(r *Round, k *keptPods) refusals {
	refused := refusals{}
	for sharing, hold := range k.holds {
		refused[sharing] = refusal{hold: hold}
	}
	for i := range k.denied {
		refused[r.sharesBudget(p.pods[k.denied[i].Pod])] = refusal{&k.denied[i].Hold, true}
	}
	return refused
}

// regainPlaces frees the places of pods that were refused, and reports whether candidates are to be taken for them now. If the turn of
// the round is over, the next round takes them, with a new plan, after those that are refused.
func (r *Round) regainPlaces(p *places, k *keptPods, began time.Time) bool {
	if !p.freeRefused(r, k) {
		return false
	}
	if r.c.Now().Sub(began) < r.turnDuration() {
		return true
	}
	*p.next = p.listRefusals(r, k)
	for sharing, one := range p.passed {
		if _, ok := (*p.next)[sharing]; !ok {
			(*p.next)[sharing] = one
		}
	}
	r.RequeueAfter(time.Millisecond)
	return false
}

// updates are the places of an update.
type updates struct {
	*places
	changes *changeDecisions
	room    recreations
	// waiting are the pods with places that wait for an answer, or for room to be created again.
	waiting []selection.Skip
	// mayRecreate are the pods that a RecreateLimiter allows to be recreated; nil if there is no limit.
	mayRecreate map[*facts.Pod]bool
}

// takeMoves adds the moves of as many candidates as there is room for to the decisions, and returns these moves.
func (u *updates) takeMoves(ctx context.Context, d *Decisions) ([]Move, error) {
	var errs []error
	taken, skipped := u.takePods()
	from := len(d.Take)
	for _, pod := range taken {
		p := u.pods[pod]
		change, err := u.changes.evaluatePod(ctx, p)
		switch {
		case err != nil:
			errs = append(errs, err)
		case change.Action == points.Recreate && u.mayRecreate != nil && !u.mayRecreate[p]: // not passed to the limiter, because it was to wait then
			u.changes.r.RequeueAfter(undecidedAgain)
			u.waiting = append(u.waiting, selection.Skip{Pod: pod, Hold: HoldOfSurge(points.ScaleOutput{}, p)})
		case change.Action != points.Wait && !u.room.takeIfRoom(p, change.Action == points.Recreate):
			u.waiting = append(u.waiting, selection.Skip{Pod: pod, Hold: roomlessHold()})
		case change.Action == points.Wait:
			u.changes.r.RequeueAfter(undecidedAgain)
			u.waiting = append(u.waiting, selection.Skip{Pod: pod, Hold: change.waitHold(p)})
		default:
			d.Take = append(d.Take, Move{p, change})
		}
	}
	d.Skipped = slices.Concat(skipped, u.waiting)
	return d.Take[from:], message.JoinErrors(errs...)
}

// moveTaken carries out the moves. If a pod of a kind with shared pods is refused, candidates of other workloads take its place.
func (r *Round) moveTaken(ctx context.Context, f *Facts, d Decisions) (Decisions, Outcome, error) {
	k, u, began := &keptPods{}, d.updates, r.c.Now()
	d.updates = nil // valid only in this round
	errs := []error{r.executeMoves(ctx, f, d.Take, k)}
	for u != nil && r.regainPlaces(u.places, k, began) {
		more, err := u.takeMoves(ctx, &d)
		errs = append(errs, err, r.executeMoves(ctx, f, more, k))
	}
	return d, k.buildOutcome(d), message.JoinErrors(errs...)
}
