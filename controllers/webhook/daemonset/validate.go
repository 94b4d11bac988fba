// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

type validator struct {
	templates podtemplate.Settings
}

func (v validator) validateSpec(set, old *v1beta1.DaemonSet, found *rules.Findings) {
	path, spec := field.NewPath("spec"), &set.Spec
	if found.SomeSelector(spec.Selector, path.Child("selector"), "empty selector is invalid for daemonset") {
		found.RequireTemplateMatch(spec.Selector, path.Child("selector"), spec.Template.Labels, path.Child("template"))
	}
	if old != nil {
		found.SameSelector(spec.Selector, old.Spec.Selector, path.Child("selector"))
	}
	if old == nil || !equality.Semantic.DeepEqual(spec.Template, old.Spec.Template) {
		template := spec.Template.DeepCopy()
		v.templates.ApplyDefaults(template)
		found.AddErrors(v.templates.ValidateTemplate(template, nil, path.Child("template"))...)
		found.RunsForever(&template.Spec, path.Child("template", "spec"), "daemonset")
	}
	if spec.BurstReplicas != nil {
		found.ResolveAmount(spec.BurstReplicas, 100, path.Child("burstReplicas"))
	}
	if rolling := spec.UpdateStrategy.RollingUpdate; rolling != nil && spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType {
		validateRolling(rolling, path.Child("updateStrategy", "rollingUpdate"), found)
	}
}

func validateRolling(rolling *v1beta1.RollingUpdateDaemonSet, path *field.Path, found *rules.Findings) {
	before := len(found.Errs)
	unavailable := resolveAmount(rolling.MaxUnavailable, path.Child("maxUnavailable"), found)
	surge := resolveAmount(rolling.MaxSurge, path.Child("maxSurge"), found)
	if len(found.Errs) == before {
		switch {
		case unavailable > 0 && surge > 0:
			found.AddErrors(field.Invalid(path.Child("maxSurge"), rolling.MaxSurge.String(), "may not be set when maxUnavailable is non-zero"))
		case unavailable == 0 && surge == 0:
			found.AddErrors(field.Invalid(path.Child("maxUnavailable"), amountText(rolling.MaxUnavailable), "cannot be 0 when maxSurge is 0"))
		case surge > 0 && rolling.Type == v1beta1.InPlaceIfPossibleRollingUpdateType:
			found.AddErrors(field.Invalid(path.Child("maxSurge"), rolling.MaxSurge.String(), "must be 0 for rollingUpdateType InPlaceIfPossible, which never adds a pod"))
		}
	}
	resolveAmount(rolling.Partition, path.Child("partition"), found)
	if rolling.Selector != nil {
		found.ValidateSelector(rolling.Selector, path.Child("selector"))
	}
}

// resolveAmount resolves a number of nodes, or a percentage of at most 100. It resolves percentages of a million nodes, so
// that any percentage above 0 gives a number above 0.
func resolveAmount(value *intstr.IntOrString, path *field.Path, found *rules.Findings) int {
	if value == nil {
		return 0
	}
	const nodes = 1_000_000
	number := found.ResolveAmount(value, nodes, path)
	if value.Type == intstr.String && number > nodes {
		found.AddErrors(field.Invalid(path, value.StrVal, "must not be greater than 100%"))
	}
	return number
}

func amountText(value *intstr.IntOrString) string {
	if value == nil {
		return "0"
	}
	return value.String()
}
