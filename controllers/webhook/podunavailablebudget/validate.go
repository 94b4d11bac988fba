// SPDX-License-Identifier: Apache-2.0

package podunavailablebudget

import (
	"context"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

type validator struct {
	budgets client.Reader
	off     bool
}

func (v *validator) validateSpec(ctx context.Context, budget, old *v1beta1.PodUnavailableBudget, found *rules.Findings) {
	if !found.SomeSpec(budget.Spec) {
		return
	}
	path := field.NewPath("spec")
	if v.off && old == nil {
		found.AddErrors(field.Forbidden(path, "feature PodUnavailableBudget is invalid, please open via feature-gate(PodUnavailableBudgetDeleteGate, PodUnavailableBudgetUpdateGate)"))
	}
	usable := true
	if budget.Spec.Selector != nil {
		usable = found.ValidateSelector(budget.Spec.Selector, path.Child("selector"))
	}
	if budget.Spec.IgnoredPodSelector != nil {
		found.ValidateSelector(budget.Spec.IgnoredPodSelector, path.Child("ignoredPodSelector"))
	}
	validateOperations(budget, old, found)
	validateTotalReplicas(budget, old, found)
	if old != nil {
		// The schema cannot have this rule, since it distinguishes an empty list from a missing one. Clients and
		// conversions turn one into the other.
		if !equality.Semantic.DeepEqual(budget.Spec.Selector, old.Spec.Selector) {
			found.AddErrors(field.Forbidden(path.Child("selector"), "selector and targetRef cannot be modified"))
		}
		return
	}
	if usable {
		v.validateConflicts(ctx, budget, found)
	}
}

// validateOperations checks the annotation that v1alpha1 has for spec.protectOperations. In a request of v1alpha1 the
// conversion has moved the valid values into the field.
func validateOperations(budget, old *v1beta1.PodUnavailableBudget, found *rules.Findings) {
	key := v1alpha1.BudgetProtectOperationsKey
	text, ok := budget.Annotations[key]
	if !ok || old != nil && sameAnnotation(budget, old, key) {
		return
	}
	for word := range strings.SplitSeq(text, ",") {
		rules.OneOf(found, v1beta1.PubOperation(strings.TrimSpace(word)), annotationPath(key),
			v1beta1.PubDeleteOperation, v1beta1.PubUpdateOperation, v1beta1.PubEvictOperation, v1beta1.PubResizeOperation)
	}
}

// validateTotalReplicas checks spec.protectTotalReplicas, or the annotation that v1alpha1 has for it. OpenKruise
// admitted an annotation of less than 1, so a request that leaves the annotation as it is passes.
func validateTotalReplicas(budget, old *v1beta1.PodUnavailableBudget, found *rules.Findings) {
	key := v1alpha1.BudgetProtectTotalReplicasKey
	total := budget.Spec.ProtectTotalReplicas
	if old != nil && sameAnnotation(budget, old, key) && equality.Semantic.DeepEqual(total, old.Spec.ProtectTotalReplicas) {
		return
	}
	if total != nil && *total < 1 { // set as an annotation, which the schema does not check
		found.AddErrors(field.Invalid(field.NewPath("spec", "protectTotalReplicas"), *total, "must be 1 or more"))
	}
	text, ok := budget.Annotations[key]
	if !ok {
		return
	}
	number, err := strconv.ParseInt(text, 10, 32)
	switch {
	case err != nil:
		found.AddErrors(field.Invalid(annotationPath(key), text, "must be a whole number of 32 bits"))
	case number < 1:
		found.AddErrors(field.Invalid(annotationPath(key), text, "must be 1 or more"))
	case total != nil && int64(*total) != number:
		found.AddErrors(field.Invalid(annotationPath(key), text, "must match spec.protectTotalReplicas when both are set"))
	}
}

func annotationPath(key string) *field.Path { return field.NewPath("metadata", "annotations").Key(key) }
