// SPDX-License-Identifier: Apache-2.0

package podprobemarker

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

func validateSpec(_ context.Context, marker, old *v1alpha1.PodProbeMarker, found *rules.Findings) {
	if !found.SomeSpec(marker.Spec) {
		return
	}
	path := field.NewPath("spec")
	found.ValidateSelector(marker.Spec.Selector, path.Child("selector"))
	// The schema cannot have this rule, since it distinguishes an empty list from a missing one.
	if old != nil && !equality.Semantic.DeepEqual(marker.Spec.Selector, old.Spec.Selector) {
		found.AddErrors(field.Forbidden(path.Child("selector"), "selector must be immutable"))
	}
	names, types := make([]string, len(marker.Spec.Probes)), make([]string, len(marker.Spec.Probes))
	for i := range marker.Spec.Probes {
		names[i], types[i] = marker.Spec.Probes[i].Name, marker.Spec.Probes[i].PodConditionType
	}
	nameAgain, typeAgain := rules.FindDuplicates(names), rules.FindDuplicates(types)
	for i := range marker.Spec.Probes {
		probe, at := &marker.Spec.Probes[i], path.Child("probes").Index(i)
		if isKept(probe.Name) {
			found.AddErrors(field.Invalid(at.Child("name"), probe.Name, "must not be the type of a condition that every pod may have"))
		}
		if nameAgain[i] {
			found.AddErrors(field.Duplicate(at.Child("name"), probe.Name))
		}
		if probe.PodConditionType != "" {
			validateType(probe, old, at.Child("podConditionType"), found)
			if typeAgain[i] {
				found.AddErrors(field.Duplicate(at.Child("podConditionType"), probe.PodConditionType))
			}
		}
		validateProbe(&probe.Probe, at.Child("probe"), found)
		validatePolicies(probe.MarkerPolicy, at.Child("markerPolicy"), found)
	}
}

// isKept reports whether another component writes conditions of this type.
func isKept(conditionType string) bool {
	return slices.Contains([]corev1.PodConditionType{
		corev1.PodScheduled, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, v1beta1.KruisePodReady, v1beta1.InPlaceUpdateReady,
	}, corev1.PodConditionType(conditionType))
}

// validateType requires a condition that can be written. OpenKruise admitted conditions that another component
// writes, though the two overwrite each other indefinitely, so a request that leaves such a condition as it is
// passes.
func validateType(probe *v1alpha1.PodContainerProbe, old *v1alpha1.PodProbeMarker, path *field.Path, found *rules.Findings) {
	for _, message := range validation.IsQualifiedName(probe.PodConditionType) {
		found.AddErrors(field.Invalid(path, probe.PodConditionType, message))
	}
	had := old != nil && slices.ContainsFunc(old.Spec.Probes, func(p v1alpha1.PodContainerProbe) bool {
		return p.PodConditionType == probe.PodConditionType
	})
	if isKept(probe.PodConditionType) && !had {
		found.AddErrors(field.Invalid(path, probe.PodConditionType, "must not be the type of a condition that every pod may have"))
	}
}

func validatePolicies(policies []v1alpha1.ProbeMarkerPolicy, path *field.Path, found *rules.Findings) {
	states := make([]string, len(policies))
	for i := range policies {
		states[i] = string(policies[i].State)
	}
	for i, again := range rules.FindDuplicates(states) {
		at := path.Index(i)
		if again {
			found.AddErrors(field.Duplicate(at.Child("state"), states[i]))
		}
		found.AddErrors(metav1validation.ValidateLabels(policies[i].Labels, at.Child("labels"))...)
		found.AddErrors(apivalidation.ValidateAnnotations(policies[i].Annotations, at.Child("annotations"))...)
	}
}
