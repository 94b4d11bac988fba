// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
	"github.com/regatta-sh/regatta/controllers/workload/subset"
)

// validateSubsets refuses a change of the nodes of a subset: a subset with other nodes needs another name.
func validateSubsets(deployment, old *v1beta1.UnitedDeployment, path *field.Path, found *rules.Findings) {
	before := map[string]*v1beta1.Subset{}
	if old != nil {
		for i := range old.Spec.Topology.Subsets {
			before[old.Spec.Topology.Subsets[i].Name] = &old.Spec.Topology.Subsets[i]
		}
	}
	seen, pod := map[string]bool{}, podOf(&deployment.Spec.Template)
	for i := range deployment.Spec.Topology.Subsets {
		part, at := &deployment.Spec.Topology.Subsets[i], path.Index(i)
		if seen[part.Name] {
			found.AddErrors(field.Duplicate(at.Child("name"), part.Name))
		}
		seen[part.Name] = true
		was := before[part.Name]
		if was != nil && !equality.Semantic.DeepEqual(was.NodeSelectorTerm, part.NodeSelectorTerm) {
			found.AddErrors(field.Forbidden(at.Child("nodeSelectorTerm"), "may not be changed in an update"))
		} else if was == nil {
			found.AddErrors(podtemplate.NodeTerm(&part.NodeSelectorTerm, at.Child("nodeSelectorTerm"))...)
		}
		if was != nil && !equality.Semantic.DeepEqual(was.Tolerations, part.Tolerations) {
			found.AddErrors(field.Forbidden(at.Child("tolerations"), "may not be changed in an update"))
		} else if was == nil {
			found.AddErrors(podtemplate.ValidateTolerations(part.Tolerations, at.Child("tolerations"))...)
		}
		if was == nil || !equality.Semantic.DeepEqual(was.Patch, part.Patch) {
			validatePatch(pod, part.Patch.Raw, at.Child("patch"), found)
		}
	}
}

// validatePatch requires a patch that can be applied. The webhook of the workload validates the result.
func validatePatch(pod *corev1.PodTemplateSpec, patch []byte, path *field.Path, found *rules.Findings) {
	if len(patch) == 0 {
		return
	}
	_, err := subset.ApplyPatch(pod, patch)
	if err != nil {
		found.AddErrors(field.Invalid(path, string(patch), "must be a strategic merge patch of a pod template: "+err.Error()))
	}
}

// podOf returns the pod template in the workload template that is set.
func podOf(template *v1beta1.SubsetTemplate) *corev1.PodTemplateSpec {
	switch {
	case template.StatefulSetTemplate != nil:
		return &template.StatefulSetTemplate.Spec.Template
	case template.AdvancedStatefulSetTemplate != nil:
		return &template.AdvancedStatefulSetTemplate.Spec.Template
	case template.CloneSetTemplate != nil:
		return &template.CloneSetTemplate.Spec.Template
	case template.DeploymentTemplate != nil:
		return &template.DeploymentTemplate.Spec.Template
	}
	return &corev1.PodTemplateSpec{}
}
