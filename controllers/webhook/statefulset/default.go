// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/defaulting"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
)

type defaulter struct {
	templates     podtemplate.Settings
	keepTemplates bool
	gates         Gates
}

// applyDefaults sets the defaults of fields that both versions have.
func (d defaulter) applyDefaults(set, old *v1beta1.StatefulSet) {
	spec := &set.Spec
	defaulting.SetIfNil(&spec.Replicas, 1)
	defaulting.SetIfNil(&spec.RevisionHistoryLimit, 10)
	defaulting.SetIfEmpty(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	defaulting.SetIfEmpty(&spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		defaulting.SetIfNil(&spec.UpdateStrategy.RollingUpdate, v1beta1.RollingUpdateStatefulSetStrategy{})
		rolling := spec.UpdateStrategy.RollingUpdate
		defaulting.SetIfEmpty(&rolling.PodUpdatePolicy, v1beta1.RecreatePodUpdatePolicyType)
		defaulting.SetIfNil(&rolling.Partition, 0)
		defaulting.SetIfNil(&rolling.MaxUnavailable, intstr.FromInt32(v1beta1.DefaultStatefulSetMaxUnavailable))
		defaulting.SetIfNil(&rolling.MinReadySeconds, 0)
	}
	d.fillTemplates(set, old)
}

// fillNewer sets the defaults of fields that only v1beta1 has.
func (d defaulter) fillNewer(set *v1beta1.StatefulSet) {
	if d.gates.AutoDeletePVC {
		policy := ptr.Deref(set.Spec.PersistentVolumeClaimRetentionPolicy, v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
		defaulting.SetIfEmpty(&policy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
		defaulting.SetIfEmpty(&policy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
		set.Spec.PersistentVolumeClaimRetentionPolicy = &policy
	}
	if d.gates.AutoResizePVC {
		defaulting.SetIfEmpty(&set.Spec.VolumeClaimUpdateStrategy.Type, v1beta1.OnDeleteVolumeClaimUpdateStrategyType)
	}
}

// fillTemplates sets defaults in templates only when they are created or changed: otherwise a release with a new default
// would make a new revision of every set.
func (d defaulter) fillTemplates(set, old *v1beta1.StatefulSet) {
	if d.keepTemplates {
		return
	}
	spec := &set.Spec
	if old == nil || !equality.Semantic.DeepEqual(spec.Template, old.Spec.Template) {
		d.templates.ApplyDefaults(&spec.Template)
	}
	if old == nil || !equality.Semantic.DeepEqual(spec.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates) {
		for i := range spec.VolumeClaimTemplates {
			d.templates.ApplyToClaim(&spec.VolumeClaimTemplates[i])
		}
	}
}
