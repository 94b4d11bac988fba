// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

type validator struct {
	reader        client.Reader
	configuration rules.Configuration
	templates     podtemplate.Settings
	off           bool
}

func (v validator) validateSpec(ctx context.Context, spread, old *v1beta1.WorkloadSpread, found *rules.Findings) {
	spec := field.NewPath("spec")
	if v.off {
		found.AddErrors(field.Forbidden(spec, "feature-gate WorkloadSpread is not enabled"))
	}
	if old == nil { // the target cannot change, but the white list may have changed since
		v.validateTarget(ctx, spread, found)
	}
	if filter := spread.Spec.TargetFilter; filter != nil && filter.Selector != nil {
		found.ValidateSelector(filter.Selector, spec.Child("targetFilter", "selector"))
	}
	validateSubsets(spread, old, spec.Child("subsets"), found)
	validateLimits(spread, spec.Child("subsets"), found)
	v.validatePatches(ctx, spread, old, found)
}

func validateSubsets(spread, old *v1beta1.WorkloadSpread, path *field.Path, found *rules.Findings) {
	names := make([]string, len(spread.Spec.Subsets))
	for i := range spread.Spec.Subsets {
		names[i] = spread.Spec.Subsets[i].Name
	}
	for i, again := range rules.FindDuplicates(names) {
		if again {
			found.AddErrors(field.Duplicate(path.Index(i).Child("name"), names[i]))
		}
	}
	for i := range spread.Spec.Subsets {
		subset, at := &spread.Spec.Subsets[i], path.Index(i)
		if was := subsetOf(old, subset.Name); was != nil && equality.Semantic.DeepEqual(was, subset) {
			continue
		}
		if subset.RequiredNodeSelector != nil {
			found.AddErrors(podtemplate.NodeTerm(subset.RequiredNodeSelector, at.Child("requiredNodeSelector"))...)
		}
		found.AddErrors(podtemplate.PreferredNodes(subset.PreferredNodeSelector, at.Child("preferredNodeSelector"))...)
		found.AddErrors(podtemplate.ValidateTolerations(subset.Tolerations, at.Child("tolerations"))...)
	}
}

func subsetOf(spread *v1beta1.WorkloadSpread, name string) *v1beta1.WorkloadSpreadSubset {
	if spread == nil {
		return nil
	}
	for i := range spread.Spec.Subsets {
		if spread.Spec.Subsets[i].Name == name {
			return &spread.Spec.Subsets[i]
		}
	}
	return nil
}

// validateLimits requires limits that are all numbers, or all percentages that add up to 100% of the pods.
func validateLimits(spread *v1beta1.WorkloadSpread, path *field.Path, found *rules.Findings) {
	var first *intstr.IntOrString
	sum, subsets := 0, spread.Spec.Subsets
	before := len(found.Errs)
	for i := range subsets {
		limit, at := subsets[i].MaxReplicas, path.Index(i).Child("maxReplicas")
		if limit == nil {
			continue
		}
		if first == nil {
			first = limit
		}
		switch {
		case spread.Spec.TargetReference.Kind == "StatefulSet" && limit.Type != intstr.Int:
			found.AddErrors(field.Invalid(at, limit.String(), "must be a number for a StatefulSet"))
		case limit.Type != first.Type:
			found.AddErrors(field.Invalid(at, limit.String(), "the maxReplicas type of all subsets must be the same"))
		default:
			sum += found.ResolveAmount(limit, 100, at)
		}
	}
	if first == nil || first.Type == intstr.Int || len(found.Errs) > before {
		return
	}
	switch last := subsets[len(subsets)-1].MaxReplicas; {
	case sum > 100:
		found.AddErrors(field.Invalid(path, field.OmitValueType{}, "the sum of all maxReplicas must not be more than 100%"))
	case sum < 100 && last != nil:
		found.AddErrors(field.Invalid(path, field.OmitValueType{}, "the sum of all maxReplicas must be 100%, unless that of the last subset is unset"))
	}
}
