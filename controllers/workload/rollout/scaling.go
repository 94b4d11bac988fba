// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// builtinScale is the prefix of the names of rules that are part of scaling, not holds of a user.
const builtinScale = "rollout.scale."

// AskScale evaluates rollout/scale. It requeues the workload for the time that a hold names,
// and records an event for a new hold.
func AskScale(ctx context.Context, r *Round, f *Facts, in points.ScaleInput) points.ScaleOutput {
	out, _ := EvaluatePoint(ctx, r, f, points.ScalePoint(), in)
	for _, h := range out.Holds {
		r.requeueForHold(h)
		known := func(o decision.Hold) bool { return reflect.DeepEqual(o, h) } // a round evaluates it several times
		if isUserHold(h) && !slices.ContainsFunc(r.scaleHolds, known) {
			r.scaleHolds = append(r.scaleHolds, h)
		}
	}
	return out
}

// isUserHold reports whether a hold of rollout/scale comes from a rule of a user.
func isUserHold(h decision.Hold) bool { return !strings.HasPrefix(h.Rule, builtinScale) }

// reportScaleHold records an event if scaling is held for a new reason, or not any more. A round that did not evaluate the pods
// that an update creates does not change what is known of their hold.
func (r *Round) reportScaleHold(f *Facts, res Result) {
	surge := r.memory.surgeHeld
	if res.LimitAsked || res.Looked && f.Difference.Update == 0 {
		r.memory.surgeHeld = ""
		if res.Limited != nil && r.isScaleHold(*res.Limited) {
			r.memory.surgeHeld = res.Limited.Reason
		}
	}
	reason := ""
	switch {
	case len(r.scaleHolds) > 0:
		reason = r.scaleHolds[0].Reason
	case r.memory.surgeHeld != "": // this round has not evaluated these pods
		reason = r.memory.scaleHeld
	}
	was := r.memory.scaleHeld
	r.memory.scaleHeld = reason
	switch {
	case reason == was:
	case reason == "":
		r.surgeFreed = surge
		r.RecordNormal(kruise.NotHeldReason, "No policy holds the scaling any more.")
	default:
		h := r.scaleHolds[0]
		r.RecordWarning(kruise.ScaleHeldReason, fmt.Sprintf("%s: %s (rule %s)", h.Reason, h.Message, h.Rule))
	}
}

// isScaleHold reports whether the round reports a hold as one of the scaling.
func (r *Round) isScaleHold(h decision.Hold) bool {
	return slices.ContainsFunc(r.scaleHolds, func(o decision.Hold) bool { return o.Rule == h.Rule && o.Reason == h.Reason })
}

// isToldAsScaling reports whether the event of a hold of the scaling also covers a condition of the update, so that no second event is recorded.
// reason is that of the condition before, "" for none.
func (r *Round) isToldAsScaling(res Result, c condition.Condition, reason string) bool {
	if c.Status != metav1.ConditionTrue {
		return r.surgeFreed != "" && r.surgeFreed == reason
	}
	top := res.TopHold()
	return top != nil && res.Limited != nil && top.Rule == res.Limited.Rule && top.Reason == res.Limited.Reason && r.isScaleHold(*top)
}
