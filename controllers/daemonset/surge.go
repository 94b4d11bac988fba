// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"context"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine/decision"
)

// LimitRecreations implements rollout.RecreateLimiter. With surge the next pod is created beside the old one (ADS-10). So rollout/scale
// decides how many are created, and a hold of the scaling applies to them, too. Pods that this round creates by scaling count as if they
// existed, though their creation may fail. Nodes that the scaling leaves without a pod come before those that have one.
func (k *Kind) LimitRecreations(ctx context.Context, r *rollout.Round, f *rollout.Facts, pods []*facts.Pod) (allowed int, held func(*facts.Pod) decision.Hold) {
	if f.Strategy.MaxSurge == 0 {
		return len(pods), nil
	}
	total, missing := r.KindMemory().(*memory).readScaling()
	in := f.ScaleInput()
	in.Counts.Total, in.Up, in.UpWithoutSurge = total, missing+len(pods), missing
	out := rollout.AskScale(ctx, r, f, in)
	return min(max(out.Create-missing, 0), len(pods)), func(p *facts.Pod) decision.Hold { return rollout.HoldOfSurge(out, p) }
}
