package cloneset

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// immutable is the message of OpenKruise, with the fields that it forgot.
const immutable = "updates to cloneset spec for fields other than 'replicas', 'template', 'lifecycle', 'scaleStrategy', " +
	"'updateStrategy', 'minReadySeconds', 'progressDeadlineSeconds', 'volumeClaimTemplates' and 'revisionHistoryLimit' are forbidden"

func validateName(set *object, found *findings) {
	path := field.NewPath("metadata", "name")
	for _, message := range apivalidation.NameIsDNSSubdomain(set.hub.Name, false) {
		found.add(field.Invalid(path, set.hub.Name, message))
	}
}

// validateUnchanged: of all fields, the selector alone is not in the list of those that may change.
func validateUnchanged(set, old *object, found *findings) {
	if !equality.Semantic.DeepEqual(set.hub.Spec.Selector, old.hub.Spec.Selector) {
		found.add(field.Forbidden(field.NewPath("spec"), immutable))
	}
}

func validateSelector(set *object, found *findings) {
	path := field.NewPath("spec", "selector")
	spec := &set.hub.Spec
	if spec.Replicas != nil {
		found.add(apivalidation.ValidateNonnegativeField(int64(*spec.Replicas), field.NewPath("spec", "replicas"))...)
	}
	if spec.Selector == nil {
		found.add(field.Required(path, ""))
		return
	}
	errs := metav1validation.ValidateLabelSelector(spec.Selector, metav1validation.LabelSelectorValidationOptions{}, path)
	if len(spec.Selector.MatchLabels)+len(spec.Selector.MatchExpressions) == 0 {
		errs = append(errs, field.Invalid(path, text(spec.Selector), "empty selector is invalid for cloneset"))
	}
	found.add(errs...)
	if len(errs) > 0 {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.Selector)
	if err != nil {
		found.add(field.Invalid(path, text(spec.Selector), err.Error()))
	} else if !selector.Matches(labels.Set(spec.Template.Labels)) {
		found.add(field.Invalid(field.NewPath("spec", "template", "metadata", "labels"), labels.Set(spec.Template.Labels).String(),
			"`selector` does not match template `labels`"))
	}
}

// validateRunsForever: a CloneSet replaces pods that end, so it has no use for pods that are meant to.
func validateRunsForever(template *corev1.PodTemplateSpec, path *field.Path, found *findings) {
	policies := []corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
	if slices.Contains(policies, template.Spec.RestartPolicy) {
		found.add(field.NotSupported(path.Child("restartPolicy"), template.Spec.RestartPolicy, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if template.Spec.ActiveDeadlineSeconds != nil {
		found.add(field.Forbidden(path.Child("activeDeadlineSeconds"), "activeDeadlineSeconds in cloneset is not Supported"))
	}
}

// text is a selector as a user would type it, for messages.
func text(selector *metav1.LabelSelector) string { return metav1.FormatLabelSelector(selector) }

// duplicates answers for each text whether an earlier one is the same.
func duplicates(texts []string) []bool {
	seen, again := map[string]bool{}, make([]bool, len(texts))
	for i, text := range texts {
		again[i], seen[text] = seen[text], true
	}
	return again
}

func validateScale(set *object, found *findings) {
	path := field.NewPath("spec", "scaleStrategy")
	strategy := &set.hub.Spec.ScaleStrategy
	for i, again := range duplicates(strategy.PodsToDelete) {
		if again {
			found.add(field.Duplicate(path.Child("podsToDelete").Index(i), strategy.PodsToDelete[i]))
		}
	}
	if strategy.MaxUnavailable != nil {
		amount(strategy.MaxUnavailable, replicas(set), path.Child("maxUnavailable"), found)
	}
}
