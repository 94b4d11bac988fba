// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"strings"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// builtinScale starts the names of the rules that are how scaling goes, not holds of a user.
const builtinScale = "rollout.scale."

// AskScale asks rollout/scale. The workload is decided again at the time that a hold names,
// and an event tells of a hold that is new.
func AskScale(ctx context.Context, r *Round, f *Facts, in points.ScaleInput) points.ScaleOutput {
	out, _ := Ask(ctx, r, f, points.ScalePoint(), in)
	for _, h := range out.Holds {
		r.until(h)
		if !strings.HasPrefix(h.Rule, builtinScale) {
			r.scaleHolds = append(r.scaleHolds, h)
		}
	}
	return out
}

// reportScaleHold records an event where scaling is held for a new reason, or no longer.
func (r *Round) reportScaleHold() {
	reason := ""
	if len(r.scaleHolds) > 0 {
		reason = r.scaleHolds[0].Reason
	}
	was := r.memory.scaleHeld
	r.memory.scaleHeld = reason
	switch {
	case reason == was:
	case reason == "":
		r.Normal(kruise.NotHeldReason, "No policy holds the scaling any more.")
	default:
		h := r.scaleHolds[0]
		r.Warn(kruise.ScaleHeldReason, fmt.Sprintf("%s: %s (rule %s)", h.Reason, h.Message, h.Rule))
	}
}
