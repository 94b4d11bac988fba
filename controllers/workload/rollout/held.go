// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// UpdateHold is what the holds of an update say about new pods.
type UpdateHold struct {
	// Whole is true while the whole workload is held: no pod is created beyond the replicas.
	Whole bool
	// Current is true while new pods are to have the current revision, because the other one
	// is held.
	Current bool
	// Movable counts the candidates that no policy holds, and Held those that one does. Both are 0 while Whole is true. A
	// candidate that cannot be changed as the strategy wants is held by nobody.
	Movable, Held int
}

// UpdateHold asks what policies hold of an update that creates so many pods of its revision.
// The plan is not noted: deciding what to move notes it. Single pods are asked about only
// where surge replaces them.
func (r *Round) UpdateHold(ctx context.Context, f *Facts, creates int, surge bool) UpdateHold {
	in := f.PlanInput()
	if in.Update == 0 { // the partition is reached, and new pods would still be of the revision
		in.Update = creates
	}
	plan, _ := engine.Decide(ctx, r.c.engine, points.PlanPoint(), f.Subject, in)
	for _, h := range plan.Holds {
		r.until(h)
	}
	out := UpdateHold{Whole: slices.ContainsFunc(plan.Holds, decision.Hold.Whole)}
	out.Current = !f.Backwards() && slices.ContainsFunc(plan.Holds, func(h decision.Hold) bool {
		return h.Whole() && !byStrategy(h) && h.NewPods != decision.NewPodsUpdate
	})
	if out.Whole || !surge {
		return out
	}
	order := r.order(ctx, f, plan, in, f.Candidate)
	for _, c := range order.candidates {
		if c.Hold != nil && c.Hold.Rule == decision.RuleEngine { // no answer about any of them
			return UpdateHold{Whole: true, Current: !f.Backwards()}
		}
		p := order.pods[c.Pod]
		held := c.Hold != nil && c.Hold.Rule != string(points.ChangePoint().Name) || slices.ContainsFunc(plan.Holds, func(h decision.Hold) bool { return concerns(h, p) })
		add(&out.Movable, !held)
		add(&out.Held, held)
	}
	return out
}

// takeBack has pods leave the state PreparingUpdate that a policy holds and whose hook has let
// them go: they would be drained for as long as the hold lasts, and to finish their update is
// a write that is held. They go the way of a pod whose user went back, so the hook
// brings their traffic back, and they prepare again when the hold ends. A pause of the
// strategy leaves them as OpenKruise does, and a decision that is late soon comes.
func (r *Round) takeBack(ctx context.Context, f *Facts, d Decisions) error {
	if _, ok := r.c.kind.(Guest); ok || r.c.typ.PlainUpdates {
		return nil
	}
	pods := make(map[types.NamespacedName]*facts.Pod, len(f.Pods))
	for _, p := range f.Pods {
		pods[p.Key()] = p
	}
	var acts []func() error
	for _, s := range d.Skipped {
		p := pods[s.Pod]
		if p == nil || s.Hold.Ours() || byStrategy(s.Hold) || s.Hold.Rule == decision.RuleEngine || s.Hold.Rule == string(points.ChangePoint().Name) {
			continue
		}
		if state, back := lifecycle.TakeBack(p.Pod, f.Lifecycle); back {
			acts = append(acts, func() error { return r.SetState(ctx, f, p, state, false) })
		}
	}
	return r.Parallel(acts)
}
