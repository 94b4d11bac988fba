// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateSelector requires a valid selector, and reports whether it is valid.
func (f *Findings) ValidateSelector(selector *metav1.LabelSelector, path *field.Path) bool {
	errs := metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
	f.AddErrors(errs...)
	return len(errs) == 0
}

// SomeSelector requires a selector that is set and does not select everything. The message is for one that
// selects everything.
func (f *Findings) SomeSelector(selector *metav1.LabelSelector, path *field.Path, message string) bool {
	if selector == nil {
		f.AddErrors(field.Required(path, ""))
		return false
	}
	ok := f.ValidateSelector(selector, path)
	if isEmpty(selector) {
		f.AddErrors(field.Invalid(path, metav1.FormatLabelSelector(selector), message))
		return false
	}
	return ok
}

// RequireTemplateMatch requires a selector that selects the pods of a template.
func (f *Findings) RequireTemplateMatch(selector *metav1.LabelSelector, path *field.Path, template labels.Set, templatePath *field.Path) {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		f.AddErrors(field.Invalid(path, metav1.FormatLabelSelector(selector), err.Error()))
	} else if !s.Matches(template) {
		f.AddErrors(field.Invalid(templatePath.Child("metadata", "labels"), template.String(), "`selector` does not match template `labels`"))
	}
}

// SameSelector refuses a change of a selector. CEL cannot, since it distinguishes an empty list from a missing one,
// and clients and conversions drop empty lists.
func (f *Findings) SameSelector(is, was *metav1.LabelSelector, path *field.Path) {
	if !equality.Semantic.DeepEqual(is, was) {
		f.AddErrors(field.Invalid(path, metav1.FormatLabelSelector(is), "cannot be changed"))
	}
}

func isEmpty(selector *metav1.LabelSelector) bool {
	return len(selector.MatchLabels)+len(selector.MatchExpressions) == 0
}
