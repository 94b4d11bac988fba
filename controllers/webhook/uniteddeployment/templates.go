// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// workload has the fields that templates of all kinds have.
type workload struct {
	name     string
	replicas *int32
	// partition is the path of the partition in a template that sets one.
	partition *field.Path
	pod       *corev1.PodTemplateSpec
	claims    []corev1.PersistentVolumeClaim
}

// validateTemplates checks the template if it, or the selector, is new or has changed.
func (v validator) validateTemplates(deployment, old *v1beta1.UnitedDeployment, path *field.Path, found *rules.Findings) {
	template := &deployment.Spec.Template
	if old != nil {
		if equality.Semantic.DeepEqual(*template, old.Spec.Template) && equality.Semantic.DeepEqual(deployment.Spec.Selector, old.Spec.Selector) {
			return
		}
		validateUnchanged(template, &old.Spec.Template, path, found)
	}
	if set := template.CloneSetTemplate; set != nil && set.Spec.Replicas != nil {
		found.AddWarning(path.Child("cloneSetTemplate", "spec", "replicas"), "replicas in cloneSetTemplate will not be used.")
	}
	for _, w := range templateWorkloads(template, path) {
		v.validateWorkload(w, deployment.Spec.Selector, path.Child(w.name, "spec"), found)
	}
}

// templateWorkloads returns the templates whose pods are checked. The template of a CloneSet is not checked, as in OpenKruise:
// the webhook of CloneSets reports its errors.
func templateWorkloads(template *v1beta1.SubsetTemplate, path *field.Path) []workload {
	var all []workload
	rolling := func(name string) *field.Path {
		return path.Child(name, "spec", "updateStrategy", "rollingUpdate", "partition")
	}
	if t := template.StatefulSetTemplate; t != nil {
		w := workload{name: "statefulSetTemplate", replicas: t.Spec.Replicas, pod: &t.Spec.Template, claims: t.Spec.VolumeClaimTemplates}
		if update := t.Spec.UpdateStrategy.RollingUpdate; update != nil && update.Partition != nil {
			w.partition = rolling(w.name)
		}
		all = append(all, w)
	}
	if t := template.AdvancedStatefulSetTemplate; t != nil {
		w := workload{name: "advancedStatefulSetTemplate", replicas: t.Spec.Replicas, pod: &t.Spec.Template, claims: t.Spec.VolumeClaimTemplates}
		if update := t.Spec.UpdateStrategy.RollingUpdate; update != nil && update.Partition != nil {
			w.partition = rolling(w.name)
		}
		all = append(all, w)
	}
	if t := template.DeploymentTemplate; t != nil {
		all = append(all, workload{name: "deploymentTemplate", replicas: t.Spec.Replicas, pod: &t.Spec.Template})
	}
	return all
}

func (v validator) validateWorkload(w workload, selector *metav1.LabelSelector, path *field.Path, found *rules.Findings) {
	if w.replicas != nil {
		found.AddErrors(field.Invalid(path.Child("replicas"), *w.replicas, "replicas in "+w.name+" will not be used"))
	}
	if w.partition != nil {
		found.AddErrors(field.Invalid(w.partition, field.OmitValueType{}, "partition in "+w.name+" will not be used"))
	}
	pod, at := w.pod.DeepCopy(), path.Child("template")
	v.templates.ApplyDefaults(pod)
	found.AddErrors(v.templates.ValidateTemplate(pod, podtemplate.ClaimNames(w.claims), at)...)
	found.RunsForever(&pod.Spec, at.Child("spec"), "uniteddeployment")
	if selector != nil {
		found.RequireTemplateMatch(selector, field.NewPath("spec", "selector"), pod.Labels, at)
	}
}

// validateUnchanged refuses changes that the API server refuses in a StatefulSet, since subsets would not be updated.
// Replicas have no effect, and may be removed.
func validateUnchanged(template, old *v1beta1.SubsetTemplate, path *field.Path, found *rules.Findings) {
	if a, b := template.StatefulSetTemplate, old.StatefulSetTemplate; a != nil && b != nil {
		keep := func(spec appsv1.StatefulSetSpec) appsv1.StatefulSetSpec {
			spec.Replicas, spec.Template, spec.UpdateStrategy, spec.MinReadySeconds = nil, corev1.PodTemplateSpec{}, appsv1.StatefulSetUpdateStrategy{}, 0
			spec.PersistentVolumeClaimRetentionPolicy, spec.Ordinals = nil, nil
			return spec
		}
		if !equality.Semantic.DeepEqual(keep(a.Spec), keep(b.Spec)) {
			found.AddErrors(field.Forbidden(path.Child("statefulSetTemplate", "spec"), "updates to statefulSetTemplate spec for fields other than 'template', "+
				"'updateStrategy', 'persistentVolumeClaimRetentionPolicy', 'minReadySeconds' and 'ordinals' are forbidden"))
		}
	}
	if a, b := template.AdvancedStatefulSetTemplate, old.AdvancedStatefulSetTemplate; a != nil && b != nil {
		keep := func(spec v1beta1.StatefulSetSpec) v1beta1.StatefulSetSpec {
			spec.Replicas, spec.Template, spec.UpdateStrategy = nil, corev1.PodTemplateSpec{}, v1beta1.StatefulSetUpdateStrategy{}
			return spec
		}
		if !equality.Semantic.DeepEqual(keep(a.Spec), keep(b.Spec)) {
			found.AddErrors(field.Forbidden(path.Child("advancedStatefulSetTemplate", "spec"),
				"updates to advancedStatefulSetTemplate spec for fields other than 'template' and 'updateStrategy' are forbidden"))
		}
	}
}
