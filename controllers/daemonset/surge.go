// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"context"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine/decision"
)

// LimitRecreations implements rollout.RecreateLimiter: with surge the next pod of each is created beside it (ADS-10), so that rollout/scale
// is asked how many are, since a hold of the scaling holds them, too. Pods that the scaling creates in this round count as if they were
// there, though their creation may fail. Nodes that it leaves without a pod come before those that have one.
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
