// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

func desiredReplicas(set *kruise.CloneSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return int(*set.Spec.Replicas)
}

// rollingStrategy is the rolling update, nil for OnDelete (A-11: then there is
// no partition and no surge).
func rollingStrategy(set *kruise.CloneSet) *kruise.RollingUpdateCloneSetStrategy {
	if set.Spec.UpdateStrategy.Type == kruise.OnDeleteCloneSetUpdateStrategyType {
		return nil
	}
	if set.Spec.UpdateStrategy.RollingUpdate == nil {
		return &kruise.RollingUpdateCloneSetStrategy{}
	}
	return set.Spec.UpdateStrategy.RollingUpdate
}

// resolveStrategy turns the strategy into numbers of pods. maxUnavailable rounds up
// without surge, but down where there is no rolling update to name it. Admission refuses a value that
// does not parse. If one exists all the same, it counts as nothing allowed,
// except for a partition, which CS-01 reads as 0.
func resolveStrategy(set *kruise.CloneSet) (points.Strategy, error) {
	n := desiredReplicas(set)
	s := points.Strategy{Type: string(kruise.RollingUpdateCloneSetUpdateStrategyType), Policy: string(kruise.RecreatePodUpdatePolicyType)}
	var errs firstError
	ru := rollingStrategy(set)
	if ru == nil {
		s.Type = string(kruise.OnDeleteCloneSetUpdateStrategyType)
		s.MaxUnavailable = errs.recordError(budget.ResolvePercent(intstr.FromString(kruise.DefaultCloneSetMaxUnavailable), n, false))
	} else {
		if ru.PodUpdatePolicy != "" {
			s.Policy = string(ru.PodUpdatePolicy)
		}
		s.Paused = ru.Paused
		s.Partition = errs.recordError(budget.ResolvePartition(ru.Partition, n))
		if ru.MaxSurge != nil && !ru.Paused {
			s.MaxSurge = errs.recordError(budget.ResolvePercent(*ru.MaxSurge, n, true))
		}
		unavailable := intstr.FromString(kruise.DefaultCloneSetMaxUnavailable)
		if ru.MaxUnavailable != nil {
			unavailable = *ru.MaxUnavailable
		}
		up := s.MaxSurge == 0 && set.Spec.UpdateStrategy.RollingUpdate != nil
		s.MaxUnavailable = errs.recordError(budget.ResolvePercent(unavailable, n, up))
		facts.SetPriority(&s, ru.PriorityStrategy)
		for _, t := range ru.ScatterStrategy {
			s.Scatter = append(s.Scatter, points.ScatterTerm{Key: t.Key, Value: t.Value})
		}
	}
	s.ScaleMaxUnavailable = math.MaxInt32
	if m := set.Spec.ScaleStrategy.MaxUnavailable; m != nil {
		s.ScaleMaxUnavailable = errs.recordError(budget.ResolvePercent(*m, n, true))
	}
	return s, errs.err
}

type firstError struct{ err error }

func (f *firstError) recordError(n int, err error) int {
	if f.err == nil {
		f.err = err
	}
	return n
}

// computeDiff works out the differences of CS-01. In the scale phase a pod that prepares its
// update may count as updated already, by a gate.
func (k *Kind) computeDiff(f *rollout.Facts, maxSurge int, scalePhase bool) budget.Diff {
	return budget.ComputeDiff(k.budgetQuestion(f, maxSurge, scalePhase))
}

func (k *Kind) budgetQuestion(f *rollout.Facts, maxSurge int, scalePhase bool) budget.Question {
	q := budget.Question{
		Replicas: f.Replicas, Partition: f.Strategy.Partition,
		MaxSurge: maxSurge, MaxUnavailable: f.Strategy.MaxUnavailable,
		Rollback:               k.Gates.PartitionRollback && f.Templates.CurrentRevision() != f.Templates.UpdateRevision(),
		ExcludePreparingDelete: k.excludesPreparingDelete(f.Workload.(*kruise.CloneSet)),
	}
	for _, p := range f.Pods {
		side := &q.Old
		if p.Facts.Updated || (scalePhase && k.soonUpdated(p)) {
			side = &q.New
		}
		side.Total++
		switch {
		case p.State == kruise.LifecycleStatePreparingDelete:
			side.PreDeleting++
		case f.DeletionAsked(p):
			side.ToDelete++
		case !f.IsSteady(p):
			side.Unavailable++
		}
	}
	return q
}

// excludesPreparingDelete reports whether pods that prepare their deletion are left out of the replicas.
func (k *Kind) excludesPreparingDelete(set *kruise.CloneSet) bool {
	return k.ExcludePreparingDelete || set.Spec.ScaleStrategy.ExcludePreparingDelete
}

// soonUpdated reports whether a pod that prepares its update counts as updated in the scale
// phase, by a gate.
func (k *Kind) soonUpdated(p *facts.Pod) bool {
	return k.Gates.PreparingUpdateAsUpdate && p.State == kruise.LifecycleStatePreparingUpdate
}

// mustCompleteUpdates reports whether pods that count as updated early, by a gate, have to
// complete their updates: the scale phase then creates the missing pods at the current revision. Where it
// cannot, because too many pods are unavailable already, these pods stop preparing their updates.
func (k *Kind) mustCompleteUpdates(f *rollout.Facts, d budget.Diff) bool {
	return k.Gates.PreparingUpdateAsUpdate && d.Missing > 0 && d.TotalUnavailable < f.Strategy.ScaleMaxUnavailable
}

func fieldError(field string, err error) error { return fmt.Errorf("reading %s: %w", field, err) }

func hashLabelError(pod *corev1.Pod, err error) error {
	return fmt.Errorf("labelling pod %s with its template hash: %w", pod.Name, err)
}
