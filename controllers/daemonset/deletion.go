// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"context"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/scaledown"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// decideDeletion evaluates rollout/scale: how many of the pods that are not wanted on their nodes may be deleted, and which
// are deleted first. It is evaluated apart from creation: nodes are independent of each other, so that a node without a pod
// delays no deletion on another node. Pods that prepare their deletion, and pods that have ended, are deleted as far as the
// answer allows planned deletions.
func (s *scaler) decideDeletion(ctx context.Context, n need) need {
	if len(n.remove)+len(n.finished) == 0 {
		return n
	}
	var chosen, prepared []*facts.Pod
	in := s.f.ScaleInput()
	for _, p := range n.remove {
		if p.State == kruise.LifecycleStatePreparingDelete {
			prepared = append(prepared, p)
			continue
		}
		chosen = append(chosen, p)
		in.Pods = append(in.Pods, s.f.DeletionFacts(p))
	}
	in.Down = len(chosen)
	out := rollout.AskScale(ctx, s.r, s.f, in)
	if out.Planned != points.PlannedPrepared && out.Planned != points.PlannedAll {
		prepared, n.finished = nil, nil
	}
	n.remove = append(prepared, s.podsToDelete(chosen, out)...)
	return n
}

// podsToDelete are the pods to delete by an answer, never more than the pods that are not wanted.
func (s *scaler) podsToDelete(pods []*facts.Pod, out points.ScaleOutput) []*facts.Pod {
	most := min(max(out.Delete, 0), len(pods))
	if most == 0 {
		return nil
	}
	all := make([]int, len(pods))
	for i := range all {
		all[i] = i
	}
	chosen := make([]*facts.Pod, 0, most)
	order := scaledown.OrderDeletions(pods, all, out, nil, s.r.NodeTopology())
	for _, i := range order[:min(most, len(order))] {
		chosen = append(chosen, pods[i])
	}
	return chosen
}
