// SPDX-License-Identifier: Apache-2.0

package podunavailablebudget

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// validateConflicts prevents two budgets from protecting the same pods, since a pod has one budget. It is called only
// for new budgets, since selectors and targets do not change. A budget with a selector and one with a target may
// coexist.
func (v *validator) validateConflicts(ctx context.Context, budget *v1beta1.PodUnavailableBudget, found *rules.Findings) {
	path := field.NewPath("spec")
	others := &v1beta1.PodUnavailableBudgetList{}
	if err := v.budgets.List(ctx, others, client.InNamespace(budget.Namespace)); err != nil {
		found.AddErrors(field.InternalError(path, fmt.Errorf("listing PodUnavailableBudgets: %w", err)))
		return
	}
	for i := range others.Items {
		other := &others.Items[i]
		if other.Name == budget.Name {
			continue
		}
		switch {
		case sameTarget(budget.Spec.TargetReference, other.Spec.TargetReference):
			found.AddErrors(field.Invalid(path.Child("targetRef"), budget.Spec.TargetReference.Kind+"/"+budget.Spec.TargetReference.Name,
				"pub.spec.targetReference is in conflict with other PodUnavailableBudget "+other.Name))
		case looselyOverlap(budget.Spec.Selector, other.Spec.Selector):
			found.AddErrors(field.Invalid(path.Child("selector"), metav1.FormatLabelSelector(budget.Spec.Selector),
				"pub.spec.selector is in conflict with other PodUnavailableBudget "+other.Name))
		}
	}
}

// sameTarget reports whether two references are to the same workload. The version does not matter.
func sameTarget(a, b *v1beta1.TargetReference) bool {
	return a != nil && b != nil && groupOf(a) == groupOf(b) && a.Kind == b.Kind && a.Name == b.Name
}

func groupOf(target *v1beta1.TargetReference) string {
	version, err := schema.ParseGroupVersion(target.APIVersion)
	if err != nil {
		return target.APIVersion
	}
	return version.Group
}

// looselyOverlap reports whether selectors look as if some pod had both (PUB-09). Only selectors with the same keys
// overlap: users who write app=web and tier=front mean different pods, even though a pod could have both labels.
func looselyOverlap(a, b *metav1.LabelSelector) bool {
	if a == nil || b == nil {
		return false
	}
	mine, theirs := byKey(a), byKey(b)
	if len(mine) == 0 || len(mine) != len(theirs) {
		return false
	}
	for key, requirements := range mine {
		if len(theirs[key]) == 0 {
			return false
		}
		for _, r := range requirements {
			for _, other := range theirs[key] {
				if !areCompatible(r, other) {
					return false
				}
			}
		}
	}
	return true
}

// byKey returns all requirements of a selector. A label counts as a requirement with one value.
func byKey(selector *metav1.LabelSelector) map[string][]metav1.LabelSelectorRequirement {
	out := map[string][]metav1.LabelSelectorRequirement{}
	for key, value := range selector.MatchLabels {
		out[key] = append(out[key], metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}})
	}
	for _, r := range selector.MatchExpressions {
		out[r.Key] = append(out[r.Key], r)
	}
	return out
}

// areCompatible reports whether a label can meet both requirements, which have the same key.
func areCompatible(a, b metav1.LabelSelectorRequirement) bool {
	if a.Operator != metav1.LabelSelectorOpIn {
		a, b = b, a
	}
	if a.Operator != metav1.LabelSelectorOpIn {
		// Neither requirement has values, so only Exists and DoesNotExist contradict each other.
		return a.Operator == b.Operator || a.Operator == metav1.LabelSelectorOpNotIn || b.Operator == metav1.LabelSelectorOpNotIn
	}
	switch b.Operator {
	case metav1.LabelSelectorOpIn:
		return hasValueAmong(a.Values, b.Values, true)
	case metav1.LabelSelectorOpNotIn:
		return hasValueAmong(a.Values, b.Values, false)
	}
	return b.Operator == metav1.LabelSelectorOpExists
}

// hasValueAmong reports whether one of the values is among the others, or, if among is false, whether one is
// not.
func hasValueAmong(values, others []string, among bool) bool {
	there := map[string]bool{}
	for _, other := range others {
		there[other] = true
	}
	for _, value := range values {
		if there[value] == among {
			return true
		}
	}
	return false
}
