// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/defaulting"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
)

// defaulter sets the defaults of CloneSets.
type defaulter struct {
	templates     podtemplate.Settings
	keepTemplates bool
}

func (d defaulter) applyDefaults(set, old *v1beta1.CloneSet) {
	defaultHub(set)
	d.defaultTemplates(&set.Spec.Template, set.Spec.VolumeClaimTemplates, old)
}

func (d defaulter) fillAlpha(set *v1alpha1.CloneSet, old *v1beta1.CloneSet) {
	defaultAlpha(set)
	d.defaultTemplates(&set.Spec.Template, set.Spec.VolumeClaimTemplates, old)
}

func defaultHub(set *v1beta1.CloneSet) {
	spec := &set.Spec
	defaultCounts(&spec.Replicas, &spec.RevisionHistoryLimit)
	strategy := &spec.UpdateStrategy
	defaulting.SetIfEmpty(&strategy.Type, v1beta1.RollingUpdateCloneSetUpdateStrategyType)
	if strategy.Type != v1beta1.RollingUpdateCloneSetUpdateStrategyType {
		return
	}
	defaulting.SetIfNil(&strategy.RollingUpdate, v1beta1.RollingUpdateCloneSetStrategy{})
	defaulting.SetIfEmpty(&strategy.RollingUpdate.PodUpdatePolicy, v1beta1.RecreatePodUpdatePolicyType)
	defaultAmounts(&strategy.RollingUpdate.Partition, &strategy.RollingUpdate.MaxUnavailable, &strategy.RollingUpdate.MaxSurge)
}

func defaultAlpha(set *v1alpha1.CloneSet) {
	spec := &set.Spec
	defaultCounts(&spec.Replicas, &spec.RevisionHistoryLimit)
	strategy := &spec.UpdateStrategy
	defaulting.SetIfEmpty(&strategy.Type, v1alpha1.RecreateCloneSetUpdateStrategyType)
	if strategy.Type != v1alpha1.OnDeleteCloneSetUpdateStrategyType {
		defaultAmounts(&strategy.Partition, &strategy.MaxUnavailable, &strategy.MaxSurge)
	}
}

func defaultCounts(replicas, revisionHistoryLimit **int32) {
	defaulting.SetIfNil(replicas, 1)
	defaulting.SetIfNil(revisionHistoryLimit, 10)
}

func defaultAmounts(partition, maxUnavailable, maxSurge **intstr.IntOrString) {
	defaulting.SetIfNil(partition, intstr.FromInt32(0))
	defaulting.SetIfNil(maxUnavailable, intstr.FromString(v1beta1.DefaultCloneSetMaxUnavailable))
	defaulting.SetIfNil(maxSurge, intstr.FromInt32(0))
}

// defaultTemplates sets defaults in templates only when they are created or changed: otherwise a release with a new
// default would make a new revision of every CloneSet, and so restart every pod.
func (d defaulter) defaultTemplates(template *corev1.PodTemplateSpec, claims []corev1.PersistentVolumeClaim, old *v1beta1.CloneSet) {
	if d.keepTemplates {
		return
	}
	if old == nil || !equality.Semantic.DeepEqual(*template, old.Spec.Template) {
		d.templates.ApplyDefaults(template)
	}
	if old == nil || !equality.Semantic.DeepEqual(claims, old.Spec.VolumeClaimTemplates) {
		for i := range claims {
			d.templates.ApplyToClaim(&claims[i])
		}
	}
}
