// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// immutable is the message of OpenKruise, with the fields that are missing in it.
const immutable = "updates to cloneset spec for fields other than 'replicas', 'template', 'lifecycle', 'scaleStrategy', " +
	"'updateStrategy', 'minReadySeconds', 'progressDeadlineSeconds', 'volumeClaimTemplates' and 'revisionHistoryLimit' are forbidden"

// validateUnchanged refuses a change of the selector, the only field that must not change.
func validateUnchanged(set, old *v1beta1.CloneSet, found *rules.Findings) {
	if !equality.Semantic.DeepEqual(set.Spec.Selector, old.Spec.Selector) {
		found.AddErrors(field.Forbidden(field.NewPath("spec"), immutable))
	}
}

func validateSelector(set *v1beta1.CloneSet, found *rules.Findings) {
	path, spec := field.NewPath("spec", "selector"), &set.Spec
	rules.NotNegative(found, spec.Replicas, field.NewPath("spec", "replicas"))
	if found.SomeSelector(spec.Selector, path, "empty selector is invalid for cloneset") {
		found.RequireTemplateMatch(spec.Selector, path, spec.Template.Labels, field.NewPath("spec", "template"))
	}
}

func validateScale(set *v1beta1.CloneSet, found *rules.Findings) {
	path := field.NewPath("spec", "scaleStrategy")
	strategy := &set.Spec.ScaleStrategy
	for i, again := range rules.FindDuplicates(strategy.PodsToDelete) {
		if again {
			found.AddErrors(field.Duplicate(path.Child("podsToDelete").Index(i), strategy.PodsToDelete[i]))
		}
	}
	if strategy.MaxUnavailable != nil {
		found.ResolveAmount(strategy.MaxUnavailable, desiredReplicas(set), path.Child("maxUnavailable"))
	}
}
