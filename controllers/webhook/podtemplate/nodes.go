// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// NodeTerm finds errors in a term that selects nodes. It is for kinds that add terms to those of a template.
func NodeTerm(term *corev1.NodeSelectorTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range term.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(term.MatchExpressions[i].Key, at.Child("key"))...)
		errs = append(errs, nodeRequirement(&term.MatchExpressions[i], at)...)
	}
	for i := range term.MatchFields {
		requirement, at := &term.MatchFields[i], path.Child("matchFields").Index(i)
		errs = append(errs, oneOf(requirement.Key, at.Child("key"), nodeName)...)
		errs = append(errs, oneOf(requirement.Operator, at.Child("operator"), corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn)...)
		if len(requirement.Values) != 1 {
			errs = append(errs, field.Required(at.Child("values"), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
		}
	}
	return errs
}

// nodeName is the only field that nodes can be selected by.
const nodeName = "metadata.name"

func nodeRequirement(requirement *corev1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	values := path.Child("values")
	switch requirement.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(requirement.Values) == 0 {
			return field.ErrorList{field.Required(values, "must be specified when `operator` is 'In' or 'NotIn'")}
		}
		var errs field.ErrorList
		for i, value := range requirement.Values {
			errs = append(errs, invalidErrors(values.Index(i), value, validation.IsValidLabelValue(value))...)
		}
		return errs
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(requirement.Values) > 0 {
			return field.ErrorList{field.Forbidden(values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")}
		}
		return nil
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(requirement.Values) != 1 {
			return field.ErrorList{field.Required(values, "must be specified single value when `operator` is 'Lt' or 'Gt'")}
		}
		if _, err := strconv.ParseInt(requirement.Values[0], 10, 64); err != nil {
			return field.ErrorList{field.Invalid(values.Index(0), requirement.Values[0], "must be an integer when `operator` is 'Lt' or 'Gt'")}
		}
		return nil
	}
	return oneOf(requirement.Operator, path.Child("operator"), corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn,
		corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt)
}

// PreferredNodes finds errors in terms that prefer nodes.
func PreferredNodes(terms []corev1.PreferredSchedulingTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range terms {
		errs = append(errs, validateWeight(terms[i].Weight, path.Index(i).Child("weight"))...)
		errs = append(errs, NodeTerm(&terms[i].Preference, path.Index(i).Child("preference"))...)
	}
	return errs
}

// ValidateTolerations finds errors in tolerations.
func ValidateTolerations(tolerations []corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range tolerations {
		errs = append(errs, validateToleration(&tolerations[i], path.Index(i))...)
	}
	return errs
}
