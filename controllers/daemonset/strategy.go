// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"math"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// resolveStrategy turns the strategy into numbers of nodes (ADS-07, A-11): both budgets round up, the
// partition and the burst round down. Where both budgets are 0 one node may be unavailable. A
// number that cannot be read counts as 0.
func resolveStrategy(set *kruise.DaemonSet, wanted int) (s points.Strategy, invalid error) {
	up := func(v *intstr.IntOrString, of int) int {
		n, err := budget.ResolvePercent(ptr.Deref(v, intstr.FromInt32(0)), of, true)
		if err != nil && invalid == nil {
			invalid = err
		}
		return max(n, 0)
	}
	s = points.Strategy{
		Type: string(set.Spec.UpdateStrategy.Type), Policy: string(kruise.RecreatePodUpdatePolicyType),
		MaxUnavailable: 1, ScaleMaxUnavailable: math.MaxInt32,
	}
	if s.Type == "" {
		s.Type = string(appsv1.RollingUpdateDaemonSetStrategyType)
	}
	ru := set.Spec.UpdateStrategy.RollingUpdate
	if ru == nil {
		return s, nil
	}
	if ru.Type == kruise.InPlaceIfPossibleRollingUpdateType {
		s.Policy = string(kruise.InPlaceIfPossiblePodUpdatePolicyType)
	}
	s.Paused = ptr.Deref(ru.Paused, false)
	s.MaxSurge, s.MaxUnavailable = up(ru.MaxSurge, wanted), up(ru.MaxUnavailable, wanted)
	if s.MaxSurge == 0 {
		s.MaxUnavailable = max(s.MaxUnavailable, 1)
	}
	partition, err := budget.ResolveShare(ptr.Deref(ru.Partition, intstr.FromInt32(0)), wanted)
	if err != nil { // all pods stay as they are
		partition, invalid = wanted, err
	}
	s.Partition = min(max(partition, 0), wanted)
	return s, invalid
}

// burstLimit is how many pods may be created, and how many deleted, at once.
func burstLimit(set *kruise.DaemonSet, wanted int) int {
	n, err := budget.ResolvePercent(ptr.Deref(set.Spec.BurstReplicas, intstr.FromInt32(kruise.DefaultDaemonSetBurstReplicas)), wanted, false)
	if err != nil {
		return kruise.DefaultDaemonSetBurstReplicas
	}
	return max(n, 1) // with 0 the DaemonSet would make no progress
}
