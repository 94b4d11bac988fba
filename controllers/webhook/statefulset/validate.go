// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

type validator struct {
	reader    client.Reader
	templates podtemplate.Settings
	gates     Gates
}

func (v validator) validateSpec(ctx context.Context, set, old *v1beta1.StatefulSet, found *rules.Findings) {
	path, spec := field.NewPath("spec"), &set.Spec
	if found.SomeSelector(spec.Selector, path.Child("selector"), "empty selector is invalid for statefulset") {
		found.RequireTemplateMatch(spec.Selector, path.Child("selector"), spec.Template.Labels, path.Child("template"))
	}
	if old != nil {
		found.SameSelector(spec.Selector, old.Spec.Selector, path.Child("selector"))
	}
	validateReserved(spec.ReserveOrdinals, path.Child("reserveOrdinals"), found)
	if spec.ScaleStrategy != nil {
		validateBudget(spec.ScaleStrategy.MaxUnavailable, path.Child("scaleStrategy", "maxUnavailable"), found)
	}
	v.validateTemplate(set, old, path.Child("template"), found)
	if rolling := spec.UpdateStrategy.RollingUpdate; rolling != nil {
		at := path.Child("updateStrategy", "rollingUpdate")
		validateBudget(rolling.MaxUnavailable, at.Child("maxUnavailable"), found)
		if rolling.UnorderedUpdate != nil && rolling.UnorderedUpdate.PriorityStrategy != nil {
			found.ValidatePriority(rolling.UnorderedUpdate.PriorityStrategy, at.Child("unorderedUpdate", "priorityStrategy"))
		}
		validateInPlace(rolling.PodUpdatePolicy, &spec.Template, path.Child("template", "spec", "readinessGates"), found)
		if old != nil && rolling.PodUpdatePolicy == v1beta1.InPlaceOnlyPodUpdatePolicyType {
			v.validateOnlyImages(&old.Spec.Template, &spec.Template, path.Child("template", "spec"), found)
		}
	}
	if old != nil {
		v.validateClaims(ctx, set, old, path.Child("volumeClaimTemplates"), found)
	}
}

// validateTemplate checks the template only if it, or the claims that it mounts, have changed.
func (v validator) validateTemplate(set, old *v1beta1.StatefulSet, path *field.Path, found *rules.Findings) {
	spec := &set.Spec
	if old != nil && equality.Semantic.DeepEqual(spec.Template, old.Spec.Template) &&
		equality.Semantic.DeepEqual(spec.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates) {
		return
	}
	template := spec.Template.DeepCopy()
	v.templates.ApplyDefaults(template)
	found.AddErrors(v.templates.ValidateTemplate(template, podtemplate.ClaimNames(spec.VolumeClaimTemplates), path)...)
	found.RunsForever(&template.Spec, path.Child("spec"), "statefulset")
}

// validateReserved requires ordinals, or ranges of them.
func validateReserved(reserved []intstr.IntOrString, path *field.Path, found *rules.Findings) {
	form := regexp.MustCompile(`^\d+-\d+$`)
	for i, entry := range reserved {
		switch {
		case entry.Type == intstr.Int:
			rules.NotNegative(found, &entry.IntVal, path.Index(i))
		case !form.MatchString(entry.StrVal):
			found.AddErrors(field.Invalid(path.Index(i), entry.StrVal, "must be a number, or a range such as 5-9"))
		default:
			first, last, _ := strings.Cut(entry.StrVal, "-")
			from, errFrom := strconv.ParseInt(first, 10, 32)
			to, errTo := strconv.ParseInt(last, 10, 32)
			if errFrom != nil || errTo != nil || from > to {
				found.AddErrors(field.Invalid(path.Index(i), entry.StrVal, "must be a range of ordinals whose start is no more than its end"))
			}
		}
	}
}

// validateBudget requires that at least one pod may be unavailable, also if there is only one.
func validateBudget(value *intstr.IntOrString, path *field.Path, found *rules.Findings) {
	if value == nil {
		return
	}
	before := len(found.Errs)
	if number := found.ResolveAmount(value, 1, path); number < 1 && len(found.Errs) == before {
		found.AddErrors(field.Invalid(path, value.String(), "must be more than 0"))
	}
}

// validateInPlace requires the readiness gate that makes a pod not ready while it is updated in place.
func validateInPlace(policy v1beta1.PodUpdatePolicyType, template *corev1.PodTemplateSpec, path *field.Path, found *rules.Findings) {
	if policy != v1beta1.InPlaceIfPossiblePodUpdatePolicyType && policy != v1beta1.InPlaceOnlyPodUpdatePolicyType {
		return
	}
	if !slices.Contains(template.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: v1beta1.InPlaceUpdateReady}) {
		found.AddErrors(field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("must contains %s when podUpdatePolicy is %s", v1beta1.InPlaceUpdateReady, policy)))
	}
}

// validateOnlyImages compares templates with their defaults set, so that a default is no change.
func (v validator) validateOnlyImages(old, template *corev1.PodTemplateSpec, path *field.Path, found *rules.Findings) {
	old, template = old.DeepCopy(), template.DeepCopy()
	v.templates.ApplyDefaults(old)
	v.templates.ApplyDefaults(template)
	operation, place, err := rules.OnlyImages(&old.Spec, &template.Spec)
	switch {
	case err != nil:
		found.AddErrors(field.InternalError(path, err))
	case operation != "":
		found.AddErrors(field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("currently only image update is allowed for InPlaceOnly, but found %s %s", operation, place)))
	}
}
