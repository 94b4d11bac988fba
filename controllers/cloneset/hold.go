package cloneset

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine/decision"
)

// noteHolds keeps the holds of a plan for the report and says whether one of
// them holds the whole workload.
func (w *world) noteHolds(holds []decision.Hold) (whole bool) {
	for _, h := range holds {
		w.holds = append(w.holds, h)
		if len(h.Where) == 0 && h.Pod == "" {
			whole = true
		}
		w.until(h)
	}
	return whole
}

// until has the workload decided again when a hold may have changed by time.
func (w *world) until(h decision.Hold) {
	if t, err := time.Parse(time.RFC3339, h.Until); err == nil {
		w.again.in(max(t.Sub(w.now), time.Second))
	}
}

// skipAll says of each candidate that the whole workload is held.
func skipAll(cands []*facts.Pod, holds []decision.Hold) []selection.Skip {
	if len(holds) == 0 {
		return nil
	}
	out := make([]selection.Skip, len(cands))
	for i, p := range cands {
		out[i] = selection.Skip{Name: p.Name, Hold: holds[0]}
	}
	return out
}

// reportHold keeps the condition UpdateHeld with the first reason that pods are
// held by a policy, and tells each new reason by one event. Waiting for
// maxUnavailable or the partition is how a rollout goes, not a hold.
func (r *Reconciler) reportHold(w *world, s *kruise.CloneSetStatus) {
	if !w.planned { // a round that scaled, or failed before, knows nothing of holds
		return
	}
	top := w.topHold()
	old := condition(s, kruise.CloneSetConditionUpdateHeld)
	if top == nil {
		if old != nil && old.Status == corev1.ConditionTrue {
			setCondition(s, kruise.CloneSetCondition{
				Type: kruise.CloneSetConditionUpdateHeld, Status: corev1.ConditionFalse,
				Reason: kruise.CloneSetNotHeldReason, Message: "No policy holds the update.",
			}, w.now)
			r.normal(w.set, kruise.CloneSetNotHeldReason, "No policy holds the update any more.")
		}
		return
	}
	message := fmt.Sprintf("%s (rule %s)", top.Message, top.Rule)
	changed := setCondition(s, kruise.CloneSetCondition{
		Type: kruise.CloneSetConditionUpdateHeld, Status: corev1.ConditionTrue, Reason: top.Reason, Message: message,
	}, w.now)
	if !changed {
		return
	}
	tell := r.warn
	if byStrategy(*top) {
		tell = r.normal
	}
	tell(w.set, kruise.CloneSetUpdateHeldReason, fmt.Sprintf("%s: %s", top.Reason, message))
}

// byStrategy says whether a hold is what the user asked for in the update strategy.
func byStrategy(h decision.Hold) bool {
	return h.Rule == "rollout.plan.paused" || h.Rule == "rollout.plan.on-delete"
}

// wholeFirst puts the holds of the whole workload ahead of those of some of its
// pods: they are what a user has to know first.
func wholeFirst(holds []decision.Hold) []decision.Hold {
	partial := func(h decision.Hold) int {
		if len(h.Where) == 0 && h.Pod == "" {
			return 0
		}
		return 1
	}
	return slices.SortedStableFunc(slices.Values(holds), func(a, b decision.Hold) int { return partial(a) - partial(b) })
}

// topHold is the first hold of a plan, else the first of a pod.
func (w *world) topHold() *decision.Hold {
	if len(w.holds) > 0 {
		return &w.holds[0]
	}
	for i := range w.skipped {
		if !w.skipped[i].Hold.Ours() {
			return &w.skipped[i].Hold
		}
	}
	return nil
}
