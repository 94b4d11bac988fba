// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// rollingUpdate is the path of the rolling update in the hub.
func rollingUpdate() *field.Path { return field.NewPath("spec", "updateStrategy", "rollingUpdate") }

func validateStrategy(set object, old *object, found *rules.Findings) {
	at, strategy, older := rollingUpdate(), &set.Hub.Spec.UpdateStrategy, asAlpha(&set)
	if older != nil {
		validateAlphaType(older, old, found)
	} else {
		rules.OneOf(found, strategy.Type, field.NewPath("spec", "updateStrategy", "type"), v1beta1.RollingUpdateCloneSetUpdateStrategyType, v1beta1.OnDeleteCloneSetUpdateStrategyType)
	}
	rolling, onDelete := strategy.RollingUpdate, strategy.Type == v1beta1.OnDeleteCloneSetUpdateStrategyType
	if rolling == nil {
		if !onDelete {
			found.AddErrors(field.Required(at, ""))
		}
		return
	}
	if older == nil && !(onDelete && rolling.PodUpdatePolicy == "") {
		rules.OneOf(found, rolling.PodUpdatePolicy, at.Child("podUpdatePolicy"),
			v1beta1.RecreatePodUpdatePolicyType, v1beta1.InPlaceIfPossiblePodUpdatePolicyType, v1beta1.InPlaceOnlyPodUpdatePolicyType)
	}
	if rolling.Partition != nil {
		found.ResolveFraction(rolling.Partition, desiredReplicas(set.Hub), at.Child("partition"))
	} else if !onDelete {
		found.AddErrors(field.Required(at.Child("partition"), ""))
	}
	if rolling.PriorityStrategy != nil {
		found.ValidatePriority(rolling.PriorityStrategy, at.Child("priorityStrategy"))
	}
	found.ValidateScatter(rolling.ScatterStrategy, at.Child("scatterStrategy"))
	validateBudget(set.Hub, rolling, at, found)
}

// validateBudget requires that an update can begin: at least one pod may be unavailable, or may be added.
func validateBudget(set *v1beta1.CloneSet, rolling *v1beta1.RollingUpdateCloneSetStrategy, path *field.Path, found *rules.Findings) {
	before, total := len(found.Errs), desiredReplicas(set)
	maxUnavailable, maxSurge := intstr.FromString(v1beta1.DefaultCloneSetMaxUnavailable), intstr.FromInt32(0)
	if rolling.MaxUnavailable != nil {
		maxUnavailable = *rolling.MaxUnavailable
	}
	if rolling.MaxSurge != nil {
		maxSurge = *rolling.MaxSurge
	}
	unavailable := found.ResolveAmount(&maxUnavailable, total, path.Child("maxUnavailable"))
	surge := found.ResolveAmount(&maxSurge, total, path.Child("maxSurge"))
	if len(found.Errs) > before {
		return
	}
	if surge > 0 && rolling.PodUpdatePolicy == v1beta1.InPlaceOnlyPodUpdatePolicyType {
		found.AddErrors(field.Forbidden(path.Child("maxSurge"), "maxSurge can not be used with InPlaceOnly, which never adds a pod"))
	}
	if total > 0 && unavailable < 1 && surge < 1 {
		found.AddErrors(field.Invalid(path.Child("maxUnavailable"), maxUnavailable.String(), "maxUnavailable and maxSurge should not both be less than 1"))
	}
}

func desiredReplicas(set *v1beta1.CloneSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return int(*set.Spec.Replicas)
}
