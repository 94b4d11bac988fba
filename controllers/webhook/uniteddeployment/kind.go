// SPDX-License-Identifier: Apache-2.0

// Package uniteddeployment has the admission of UnitedDeployments (UD-14): their defaults and their rules, in
// both versions, whose specs are the same.
//
// No defaults are set in the templates of workloads: the workloads get them when they are created.
package uniteddeployment

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
)

// New returns the kind. templates are the settings that pod templates are checked with.
func New(templates podtemplate.Settings) *admit.Kind[*v1beta1.UnitedDeployment] {
	v := validator{templates}
	return &admit.Kind[*v1beta1.UnitedDeployment]{
		New: func() *v1beta1.UnitedDeployment { return &v1beta1.UnitedDeployment{} },
		Loose: []string{
			"spec.template.statefulSetTemplate.metadata", "spec.template.statefulSetTemplate.spec.template",
			"spec.template.advancedStatefulSetTemplate.metadata", "spec.template.advancedStatefulSetTemplate.spec.template",
			"spec.template.cloneSetTemplate.metadata", "spec.template.cloneSetTemplate.spec.template",
			"spec.template.deploymentTemplate.metadata", "spec.template.deploymentTemplate.spec.template",
		},
		Same: func(a, b *v1beta1.UnitedDeployment) bool {
			return equality.Semantic.DeepEqual(a.Spec, b.Spec)
		},
		Default:  setDefaults,
		Validate: v.validateSpec,
	}
}

func setDefaults(deployment, _ *v1beta1.UnitedDeployment) {
	spec := &deployment.Spec
	// If subsets set their own replicas, a default of 1 could contradict them. Then the total is not needed, or the
	// user must set it.
	if spec.Replicas == nil && !anyCounts(spec.Topology.Subsets) {
		spec.Replicas = ptr.To[int32](1)
	}
	if spec.RevisionHistoryLimit == nil {
		spec.RevisionHistoryLimit = ptr.To[int32](10)
	}
	if spec.UpdateStrategy.Type == "" {
		spec.UpdateStrategy.Type = v1beta1.ManualUpdateStrategyType
	}
	schedule := &spec.Topology.ScheduleStrategy
	if schedule.Type == "" {
		schedule.Type = v1beta1.FixedUnitedDeploymentScheduleStrategyType
	}
	if schedule.Adaptive == nil {
		return
	}
	if schedule.Adaptive.RescheduleCriticalSeconds == nil {
		schedule.Adaptive.RescheduleCriticalSeconds = ptr.To[int32](v1beta1.DefaultRescheduleCriticalSeconds)
	}
	if schedule.Adaptive.UnschedulableDuration == nil {
		schedule.Adaptive.UnschedulableDuration = ptr.To[int32](v1beta1.DefaultUnschedulableDuration)
	}
}

func anyCounts(subsets []v1beta1.Subset) bool {
	for i := range subsets {
		if subsets[i].Replicas != nil || hasLimits(&subsets[i]) {
			return true
		}
	}
	return false
}

func hasLimits(subset *v1beta1.Subset) bool {
	return subset.MinReplicas != nil || subset.MaxReplicas != nil
}
