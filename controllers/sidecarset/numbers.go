// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/matching"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// anyValue in a scatter term represents each value that pods have.
const anyValue = "*"

// ReadSpec implements rollout.Kind. ResolvePodCounts completes the Spec.
func (k *Kind) ReadSpec(o client.Object) (rollout.Spec, error) {
	set := o.(*kruise.SidecarSet)
	selector, err := matching.NewSelector(set)
	if err != nil {
		return rollout.Spec{}, err
	}
	out := rollout.Spec{Selector: selector.PodSelector()}
	if out.Terms, err = facts.NewTerms(set.Spec.UpdateStrategy.PriorityStrategy); err != nil {
		return rollout.Spec{}, err
	}
	return out, nil
}

// ResolvePodCounts implements rollout.KindWithSharedPods: percentages are of the matched pods.
func (k *Kind) ResolvePodCounts(o client.Object, spec *rollout.Spec, pods []*corev1.Pod) {
	set := o.(*kruise.SidecarSet)
	strategy := &set.Spec.UpdateStrategy
	spec.Replicas = len(pods)
	s := points.Strategy{
		Type: string(kruise.RollingUpdateSidecarSetStrategyType), Policy: string(kruise.InPlaceOnlyPodUpdatePolicyType),
		Paused: strategy.Paused, ScaleMaxUnavailable: math.MaxInt32,
	}
	if strategy.Type != "" {
		s.Type = string(strategy.Type)
	}
	if s.Partition, spec.Invalid = budget.ResolvePartition(strategy.Partition, len(pods)); spec.Invalid != nil {
		s.Partition = len(pods) // no pod is updated until the partition can be read
	}
	unavailable := ptr.Deref(strategy.MaxUnavailable, intstr.FromInt32(1))
	n, err := budget.ResolvePercent(unavailable, len(pods), true)
	if err != nil {
		n, spec.Invalid = 0, err
	}
	s.MaxUnavailable = max(n, 0)
	facts.SetPriority(&s, strategy.PriorityStrategy)
	s.Scatter = expandScatter(strategy.ScatterStrategy, pods)
	spec.Strategy = s
}

// expandScatter returns the terms with each value that pods have in place of *.
func expandScatter(terms kruise.CloneSetUpdateScatterStrategy, pods []*corev1.Pod) (out []points.ScatterTerm) {
	seen := map[points.ScatterTerm]bool{}
	add := func(term points.ScatterTerm) {
		if !seen[term] {
			seen[term], out = true, append(out, term)
		}
	}
	for _, t := range terms {
		if t.Value != anyValue {
			add(points.ScatterTerm{Key: t.Key, Value: t.Value})
			continue
		}
		for _, pod := range pods {
			if value, ok := pod.Labels[t.Key]; ok {
				add(points.ScatterTerm{Key: t.Key, Value: value})
			}
		}
	}
	return out
}

// ComputeDifference implements rollout.Kind (SS-15). The partition is subtracted from the number of pods that wait for an update. Only
// updated pods count as unavailable, if their update may be the cause.
func (k *Kind) ComputeDifference(f *rollout.Facts) rollout.UpdateDelta {
	if f.Strategy.Type != string(kruise.RollingUpdateSidecarSetStrategyType) {
		return rollout.UpdateDelta{Settled: true}
	}
	waiting, busy := 0, 0
	for _, p := range f.Pods {
		switch {
		case f.IsCandidate(p):
			waiting++
		case p.Facts.Updated && !f.IsAvailable(p) && isUnderWay(f.Workload.(*kruise.SidecarSet), p):
			busy++
		}
	}
	update := max(waiting-f.Strategy.Partition, 0)
	return rollout.UpdateDelta{
		Update: update, MaxUnavailable: f.Strategy.MaxUnavailable, Settled: update == 0,
		Unavailable: &selection.Unavailable{Total: busy, AtTarget: busy},
	}
}
