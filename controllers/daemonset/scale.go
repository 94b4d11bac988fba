// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// scaler scales one DaemonSet in one round.
type scaler struct {
	k      *Kind
	r      *rollout.Round
	f      *rollout.Facts
	t      templates
	set    *kruise.DaemonSet
	memory *memory
	sites  []*site
	// held are the nodes whose new pods have the current revision, because the update is held.
	held map[string]bool
}

func (k *Kind) newScaler(r *rollout.Round, f *rollout.Facts) *scaler {
	return &scaler{
		k: k, r: r, f: f, t: f.Templates.(templates), set: f.Workload.(*kruise.DaemonSet),
		memory: r.KindMemory().(*memory), sites: buildSites(f), held: map[string]bool{},
	}
}

// need is what the nodes require.
type need struct {
	// create are names of nodes.
	create []string
	// remove are the pods to delete; finished are pods to delete that have ended.
	remove   []*facts.Pod
	finished []*corev1.Pod
}

// ScalePods implements rollout.Kind (ADS-03 to ADS-06). It creates a pod on each node that should run one and has
// none. It deletes pods that failed, that are too many, or that are not wanted on their nodes.
func (k *Kind) ScalePods(ctx context.Context, r *rollout.Round, f *rollout.Facts) (acted bool, err error) {
	s := k.newScaler(r, f)
	n := s.computeNeed()
	s.memory.forgetGoneNodes(s.sites)
	most := burstLimit(s.set, f.Replicas)
	create := n.create[:min(len(n.create), most, s.decideCreation(ctx, n))]
	s.memory.noteScaling(len(f.Pods)+len(create), len(n.create)-len(create))
	if len(create) > 0 {
		if err = s.askHold(ctx, create); err == nil {
			err = s.createPods(ctx, create)
		}
	}
	removed, failed := s.applyDeletions(ctx, s.decideDeletion(ctx, n), most)
	return removed, errors.Join(err, failed)
}

// computeNeed works out what each node requires.
func (s *scaler) computeNeed() (n need) {
	for _, at := range s.sites {
		switch {
		case at.node == nil:
			n.remove = append(n.remove, at.unscheduledPods()...)
		case !at.mayStay():
			n.remove, n.finished = append(n.remove, at.pods...), append(n.finished, at.finishedPods()...)
		default:
			s.assessNode(at, &n)
		}
	}
	s.memory.sortByRefusals(n.create)
	if kept := s.creationLimit(); len(n.create) > kept {
		n.create = n.create[:kept]
	}
	return n
}

// assessNode applies ADS-03 to a node whose pod may go on running.
func (s *scaler) assessNode(at *site, n *need) {
	waiting := false
	for _, p := range at.finishedPods() {
		if left := s.memory.backOff(at.name, s.set.Generation, s.r.Now); left > 0 {
			s.r.RequeueAfter(left)
			waiting = true
			continue
		}
		n.finished = append(n.finished, p)
	}
	for _, p := range at.pods {
		if p.State == kruise.LifecycleStatePreparingDelete {
			n.remove = append(n.remove, p)
		}
	}
	before, next := at.runningPods(false), at.runningPods(true)
	if s.f.Strategy.MaxSurge == 0 {
		n.remove = append(n.remove, surplusPods(slices.Concat(before, next))...)
		if at.shouldRun() && len(at.pods)+len(at.gone) == 0 {
			n.create = append(n.create, at.name)
		}
		return
	}
	if at.shouldRun() && len(before)+len(next) == 0 && !waiting {
		n.create = append(n.create, at.name)
	}
	if len(before) > 1 {
		n.remove, before = append(n.remove, before[1:]...), before[:1]
	}
	if len(next) > 1 {
		n.remove, next = append(n.remove, next[1:]...), next[:1]
	}
	if len(before) == 1 && len(next) == 1 && (!before[0].Ready || s.f.IsAvailable(next[0])) {
		n.remove = append(n.remove, before[0])
	}
}

// surplusPods are all pods but the one that stays: the oldest of those that are scheduled, if any is.
func surplusPods(pods []*facts.Pod) []*facts.Pod {
	if len(pods) < 2 {
		return nil
	}
	slices.SortFunc(pods, func(a, b *facts.Pod) int {
		return cmp.Or(cmp.Compare(b.Facts.Assigned, a.Facts.Assigned), compareAge(a.Pod, b.Pod))
	})
	return pods[1:]
}

// unscheduledPods are pods that wait for a node that is gone (ADS-04). The garbage collector deletes
// pods that ran there.
func (s *site) unscheduledPods() (out []*facts.Pod) {
	for _, p := range s.pods {
		if p.Spec.NodeName == "" {
			out = append(out, p)
		}
	}
	return out
}

// finishedPods are the pods that have ended and do not terminate.
func (s *site) finishedPods() (out []*corev1.Pod) {
	for _, p := range s.gone {
		if p.DeletionTimestamp == nil {
			out = append(out, p)
		}
	}
	return out
}

// creationLimit is how many pods may be created, where the partition bounds that too (ADS-05).
func (s *scaler) creationLimit() int {
	strategy := s.f.Strategy
	if !s.set.Spec.ScaleStrategy.PartitionedScaling || strategy.Partition == 0 || strategy.Type != string(appsv1.RollingUpdateDaemonSetStrategyType) {
		return len(s.sites)
	}
	have := 0
	for _, at := range s.sites {
		incrementIf(&have, at.shouldRun() && len(at.runningPods(true)) > 0)
	}
	return max(s.f.Replicas-have-strategy.Partition, 0)
}

// decideCreation evaluates rollout/scale: how many pods may be created.
func (s *scaler) decideCreation(ctx context.Context, n need) int {
	if len(n.create) == 0 {
		return 0
	}
	in := s.f.ScaleInput()
	in.Up, in.UpWithoutSurge = len(n.create), len(n.create)
	out := rollout.AskScale(ctx, s.r, s.f, in)
	return max(out.Create, 0)
}

// applyDeletions deletes at most so many pods, those that have ended first. Pods whose deletion a hook holds do not
// count (ADS-06).
func (s *scaler) applyDeletions(ctx context.Context, n need, most int) (acted bool, err error) {
	var ended, others []*facts.Pod
	for _, p := range n.finished {
		ended = append(ended, &facts.Pod{Pod: p})
	}
	held := func(p *facts.Pod) bool { return lifecycle.BeforeDelete(p.Pod, s.f.Lifecycle) == lifecycle.Wait }
	ended = slices.DeleteFunc(ended, held)
	ended = ended[:min(len(ended), most)]
	others = slices.DeleteFunc(slices.Clone(n.remove), held)
	others = others[:min(len(others), most-len(ended))]
	let, err := s.r.LetGo(ctx, s.f, ended, func(p *facts.Pod) error { return s.deleteFinished(ctx, p.Pod) })
	more, failed := s.deletePods(ctx, others)
	return let || more, errors.Join(err, failed)
}

// deleteFinished deletes a pod that has ended, and records the failure for the delay of its node. A Succeeded
// pod is deleted as well: in OpenKruise it keeps its node without a daemon indefinitely.
func (s *scaler) deleteFinished(ctx context.Context, p *corev1.Pod) error {
	node := nodefit.NodeOf(p)
	message := fmt.Sprintf("Found failed daemon pod %s/%s on node %s, will try to kill it", p.Namespace, p.Name, node)
	if err := s.r.DeletePod(ctx, s.f, &facts.Pod{Pod: p}); err != nil {
		return err
	}
	s.r.RecordWarning(kruise.FailedDaemonPodReason, message)
	s.memory.recordFailure(node, s.set.Generation, s.r.Now)
	return nil
}

// deletePods deletes pods. It sets a pod that a hook holds to PreparingDelete instead.
func (s *scaler) deletePods(ctx context.Context, pods []*facts.Pod) (bool, error) {
	return s.r.LetGo(ctx, s.f, pods, func(p *facts.Pod) error { return s.r.DeletePod(ctx, s.f, p) })
}
