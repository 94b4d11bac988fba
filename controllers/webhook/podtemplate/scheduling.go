// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateScheduling checks the fields that say where pods may run.
func validateScheduling(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(spec.NodeSelector, path.Child("nodeSelector"))
	for i := range spec.Tolerations {
		errs = append(errs, validateToleration(&spec.Tolerations[i], path.Child("tolerations").Index(i))...)
	}
	kinds := sets.New[string]()
	for i, constraint := range spec.TopologySpreadConstraints {
		at := path.Child("topologySpreadConstraints").Index(i)
		kind := fmt.Sprintf("{%v, %v}", constraint.TopologyKey, constraint.WhenUnsatisfiable)
		if kinds.Has(kind) {
			errs = append(errs, field.Duplicate(at.Child("{topologyKey, whenUnsatisfiable}"), kind))
		}
		kinds.Insert(kind)
		if constraint.MaxSkew <= 0 {
			errs = append(errs, field.Invalid(at.Child("maxSkew"), constraint.MaxSkew, "must be greater than zero"))
		}
		if constraint.TopologyKey == "" {
			errs = append(errs, field.Required(at.Child("topologyKey"), "can not be empty"))
		}
		errs = append(errs, oneOf(constraint.WhenUnsatisfiable, at.Child("whenUnsatisfiable"), corev1.DoNotSchedule, corev1.ScheduleAnyway)...)
		errs = append(errs, validateSelector(constraint.LabelSelector, at.Child("labelSelector"))...)
	}
	if spec.Affinity != nil {
		errs = append(errs, validateAffinity(spec.Affinity, path.Child("affinity"))...)
	}
	return errs
}

func validateToleration(toleration *corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if toleration.Key != "" {
		errs = append(errs, metav1validation.ValidateLabelName(toleration.Key, path.Child("key"))...)
	} else if toleration.Operator != corev1.TolerationOpExists {
		errs = append(errs, field.Invalid(path.Child("operator"), toleration.Operator,
			"operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
	}
	if toleration.TolerationSeconds != nil && toleration.Effect != corev1.TaintEffectNoExecute {
		errs = append(errs, field.Invalid(path.Child("effect"), toleration.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
	}
	switch messages := validation.IsValidLabelValue(toleration.Value); toleration.Operator {
	case corev1.TolerationOpExists:
		if toleration.Value != "" {
			errs = append(errs, field.Invalid(path.Child("operator"), toleration.Value, "value must be empty when `operator` is 'Exists'"))
		}
	case corev1.TolerationOpEqual, "": // "" is Equal
		if len(messages) > 0 {
			errs = append(errs, field.Invalid(path.Child("operator"), toleration.Value, strings.Join(messages, ";")))
		}
	}
	if toleration.Effect != "" {
		errs = append(errs, oneOf(toleration.Effect, path.Child("effect"),
			corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
	}
	return errs
}

func validateAffinity(affinity *corev1.Affinity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	if node := affinity.NodeAffinity; node != nil {
		at := path.Child("nodeAffinity")
		if terms := node.RequiredDuringSchedulingIgnoredDuringExecution; terms != nil && len(terms.NodeSelectorTerms) == 0 {
			errs = append(errs, field.Required(at.Child(required, "nodeSelectorTerms"), "must have at least one node selector term"))
		}
		for i, term := range node.PreferredDuringSchedulingIgnoredDuringExecution {
			errs = append(errs, validateWeight(term.Weight, at.Child(preferred).Index(i).Child("weight"))...)
		}
	}
	pods := func(requiredTerms []corev1.PodAffinityTerm, preferredTerms []corev1.WeightedPodAffinityTerm, at *field.Path) {
		for i := range requiredTerms {
			errs = append(errs, podTerm(&requiredTerms[i], at.Child(required).Index(i))...)
		}
		for i := range preferredTerms {
			errs = append(errs, validateWeight(preferredTerms[i].Weight, at.Child(preferred).Index(i).Child("weight"))...)
			errs = append(errs, podTerm(&preferredTerms[i].PodAffinityTerm, at.Child(preferred).Index(i).Child("podAffinityTerm"))...)
		}
	}
	if pod := affinity.PodAffinity; pod != nil {
		pods(pod.RequiredDuringSchedulingIgnoredDuringExecution, pod.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAffinity"))
	}
	if pod := affinity.PodAntiAffinity; pod != nil {
		pods(pod.RequiredDuringSchedulingIgnoredDuringExecution, pod.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAntiAffinity"))
	}
	return errs
}

func podTerm(term *corev1.PodAffinityTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if term.TopologyKey == "" {
		errs = append(errs, field.Required(path.Child("topologyKey"), "can not be empty"))
	} else {
		errs = append(errs, metav1validation.ValidateLabelName(term.TopologyKey, path.Child("topologyKey"))...)
	}
	errs = append(errs, validateSelector(term.LabelSelector, path.Child("labelSelector"))...)
	errs = append(errs, validateSelector(term.NamespaceSelector, path.Child("namespaceSelector"))...)
	for _, namespace := range term.Namespaces {
		errs = append(errs, invalidErrors(path.Child("namespaces"), namespace, validation.IsDNS1123Label(namespace))...)
	}
	return errs
}

func validateSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: true}, path)
}

func validateWeight(weight int32, path *field.Path) field.ErrorList {
	if weight <= 0 || weight > 100 {
		return field.ErrorList{field.Invalid(path, weight, "must be in the range 1-100")}
	}
	return nil
}
