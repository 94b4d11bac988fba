// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// UpdateHold is the effect of the holds of an update on new pods.
type UpdateHold struct {
	// Whole is true while the whole workload is held: no pod is created beyond the replicas.
	Whole bool
	// Current is true while new pods are to have the current revision, because the other one
	// is held.
	Current bool
	// Movable counts the candidates that no policy holds, and Held those that a policy holds. Both are 0 while Whole is true. A
	// candidate that cannot be changed by the strategy does not count as held.
	Movable, Held int
	// Missing reports for each missing pod that was passed whether it is to have the current revision, because a hold of the
	// workload, of this pod or of its group keeps it there.
	Missing []bool
}

// UpdateHold evaluates the holds of an update that creates so many pods of its revision.
// It does not record the plan, since decideMoves does. It evaluates single pods only
// if surge replaces them. missing are the pods to create, as they would be at the
// current revision.
func (r *Round) UpdateHold(ctx context.Context, f *Facts, creates int, surge bool, missing ...*corev1.Pod) UpdateHold {
	in := f.PlanInput()
	if in.Update == 0 { // the partition is reached, but new pods would still be of the update revision
		in.Update = creates
	}
	plan, _ := engine.Decide(ctx, r.c.Engine, points.PlanPoint(), f.Subject, in)
	for _, h := range plan.Holds {
		r.requeueForHold(h)
	}
	out := UpdateHold{Whole: slices.ContainsFunc(plan.Holds, decision.Hold.IsWholeWorkload)}
	out.Current = !f.IsRollback() && slices.ContainsFunc(plan.Holds, func(h decision.Hold) bool {
		return h.IsWholeWorkload() && !byStrategy(h) && h.NewPods != decision.NewPodsUpdate
	})
	if !out.Whole && surge {
		r.countHeld(ctx, f, plan, in, &out)
	}
	out.Missing = make([]bool, len(missing))
	if !f.IsRollback() && len(missing) > 0 {
		r.askAboutMissing(ctx, f, plan, in, missing, &out)
	}
	return out
}

// countHeld counts the candidates that surge could replace.
func (r *Round) countHeld(ctx context.Context, f *Facts, plan points.PlanOutput, in points.PlanInput, out *UpdateHold) {
	order := r.orderCandidates(ctx, f, plan, in, f.IsCandidate)
	for _, c := range order.candidates {
		p := order.pods[c.Pod]
		if c.Hold != nil && c.Hold.Rule == decision.RuleEngine && len(p.Facts.MissingFacts) == 0 { // no answer for any of them
			*out = UpdateHold{Whole: true, Current: !f.IsRollback()}
			return
		}
		held := c.Hold != nil && c.Hold.Rule != string(points.ChangePoint().Name) || slices.ContainsFunc(plan.Holds, func(h decision.Hold) bool { return holdMatchesPod(h, p) })
		incrementIf(&out.Movable, !held)
		incrementIf(&out.Held, held)
	}
}

// askAboutMissing evaluates rollout/rank for pods to create, as if they existed at the current revision. A rule that
// holds such a pod keeps it from being created at the update revision. If the group of a pod is not known yet, each hold of a group applies to it.
func (r *Round) askAboutMissing(ctx context.Context, f *Facts, plan points.PlanOutput, in points.PlanInput, missing []*corev1.Pod, out *UpdateHold) {
	holds := plan.Holds
	pods := make([]*corev1.Pod, len(missing))
	for i, p := range missing {
		pods[i] = p.DeepCopy()
		pods[i].UID = types.UID(fmt.Sprint("missing-", i)) // the Set keeps facts by UID
	}
	known := facts.NewSet(facts.WithOrdinals(r.c.typ.Ordinals), facts.WithNodes(r.c.typ.NodeOf)).
		Update(pods, f.Terms, r.c.topology, func(*corev1.Pod) bool { return false })
	if !out.Current {
		question := points.RankInput{Workload: in.Workload, Strategy: in.Strategy}
		for _, p := range known {
			question.Pods = append(question.Pods, points.HidePodMissingFacts(p.Facts)) // they are held below
		}
		order, rec := engine.Decide(ctx, r.c.Engine, points.RankPoint(), f.Subject, question)
		if rec.Outcome != decision.Decided {
			r.RequeueAfter(undecidedAgain)
		}
		holds = append(slices.Clone(holds), order.Holds...)
	}
	for i, p := range known {
		out.Missing[i] = out.Current || r.holdOfMissingFact(f.Subject, p) != nil || slices.ContainsFunc(holds, func(h decision.Hold) bool {
			return !byStrategy(h) && h.NewPods != decision.NewPodsUpdate && mayConcern(h, p)
		})
	}
}

// mayConcern reports whether a hold may apply to a pod that does not exist yet.
func mayConcern(h decision.Hold, p *facts.Pod) bool {
	groups := groupsOf(p)
	for dimension, group := range h.Where {
		if is := groups[dimension]; is != "" && is != group {
			return false
		}
	}
	return h.NamesPod(p.Namespace, p.Name)
}

// undecidedLong is how long policies may give no answer before pods that prepare for their update are taken back.
const undecidedLong = time.Minute

// takeBack moves pods out of the state PreparingUpdate that a policy holds and whose hook has released
// them. Otherwise they would be drained for as long as the hold lasts, and the write that finishes their update is
// held. They follow the path of a pod whose user went back: the hook
// restores their traffic, and they prepare again when the hold ends. If the strategy is
// paused, they stay, as in OpenKruise. A late decision usually comes soon, so pods wait
// for it. If a rule fails for a pod for a minute, that counts as a hold.
func (r *Round) takeBack(ctx context.Context, f *Facts, d Decisions) error {
	if _, ok := r.c.kind.(KindWithSharedPods); ok || r.c.typ.PlainUpdates {
		return nil
	}
	lasts := r.noteUndecided(d)
	pods := make(map[types.NamespacedName]*facts.Pod, len(f.Pods))
	for _, p := range f.Pods {
		pods[p.Key()] = p
	}
	var acts []func() error
	for _, s := range d.Skipped {
		p := pods[s.Pod]
		if p == nil || !keepsFromUpdate(s.Hold) && !lasts[s.Pod] {
			continue
		}
		if state, back := lifecycle.TakeBack(p.Pod, f.Lifecycle); back {
			acts = append(acts, func() error { return r.SetState(ctx, f, p, state, false) })
		}
	}
	return r.RunParallel(acts)
}

// keepsFromUpdate reports whether a hold comes from a policy that decided.
func keepsFromUpdate(h decision.Hold) bool {
	return !h.IsFromWalk() && !byStrategy(h) && h.Rule != decision.RuleEngine && h.Rule != string(points.ChangePoint().Name)
}

// isUndecided reports whether a hold means that no decision was made.
func isUndecided(h decision.Hold) bool {
	return h.Rule == decision.RuleEngine || h.Rule == string(points.ChangePoint().Name) && h.Reason == decision.ReasonNoDecision
}

// noteUndecided returns the pods for which no decision has been made for a long time. While there are undecided pods, it requeues the
// workload.
func (r *Round) noteUndecided(d Decisions) map[types.NamespacedName]bool {
	var since map[types.NamespacedName]time.Time
	long := map[types.NamespacedName]bool{}
	for _, s := range d.Skipped {
		if !isUndecided(s.Hold) {
			continue
		}
		if since == nil {
			since = map[types.NamespacedName]time.Time{}
			r.RequeueAfter(undecidedAgain)
		}
		at, was := r.memory.undecided[s.Pod]
		if !was {
			at = r.Now
		}
		since[s.Pod] = at
		if r.Now.Sub(at) >= undecidedLong {
			long[s.Pod] = true
		}
	}
	r.memory.undecided = since
	return long
}
