// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// builtinScale starts the names of the rules that are how scaling goes, not holds of a user.
const builtinScale = "rollout.scale."

// AskScale asks rollout/scale. The workload is decided again at the time that a hold names,
// and an event reports a hold that is new.
func AskScale(ctx context.Context, r *Round, f *Facts, in points.ScaleInput) points.ScaleOutput {
	out, _ := EvaluatePoint(ctx, r, f, points.ScalePoint(), in)
	for _, h := range out.Holds {
		r.requeueForHold(h)
		known := func(o decision.Hold) bool { return reflect.DeepEqual(o, h) } // a round asks more than once
		if isUserHold(h) && !slices.ContainsFunc(r.scaleHolds, known) {
			r.scaleHolds = append(r.scaleHolds, h)
		}
	}
	return out
}

// isUserHold reports whether a hold of rollout/scale is more than how scaling goes.
func isUserHold(h decision.Hold) bool { return !strings.HasPrefix(h.Rule, builtinScale) }

// reportScaleHold records an event where scaling is held for a new reason, or no longer. A round that did not come to ask about the pods
// that an update creates knows nothing new of their hold.
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
	case r.memory.surgeHeld != "": // this round has not asked about these pods
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

// isScaleHold reports whether the round tells a hold as one of the scaling.
func (r *Round) isScaleHold(h decision.Hold) bool {
	return slices.ContainsFunc(r.scaleHolds, func(o decision.Hold) bool { return o.Rule == h.Rule && o.Reason == h.Reason })
}

// isToldAsScaling reports whether the event of a hold of the scaling reports a condition of the update, too, so that no second event does.
// reason is that of the condition before, "" for none.
func (r *Round) isToldAsScaling(res Result, c Condition, reason string) bool {
	if c.Status != corev1.ConditionTrue {
		return r.surgeFreed != "" && r.surgeFreed == reason
	}
	top := res.TopHold()
	return top != nil && res.Limited != nil && top.Rule == res.Limited.Rule && top.Reason == res.Limited.Reason && r.isScaleHold(*top)
}
