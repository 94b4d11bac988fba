// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// validateOthers refuses a SidecarSet if another one adds something different with the same name to the same
// pods.
func (o Options) validateOthers(ctx context.Context, set *v1beta1.SidecarSet, found *rules.Findings) {
	list := &v1beta1.SidecarSetList{}
	if err := o.Reader.List(ctx, list); err != nil {
		found.AddErrors(field.InternalError(field.NewPath("spec"), fmt.Errorf("listing SidecarSets: %w", err)))
		return
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name == set.Name || baseOf(set) == other.Name || baseOf(other) == set.Name || !canSharePod(set, other) {
			continue
		}
		path := field.NewPath("spec")
		compareContainers(set.Spec.InitContainers, other.Spec.InitContainers, other.Name, path.Child("initContainers"), found)
		compareContainers(set.Spec.Containers, other.Spec.Containers, other.Name, path.Child("containers"), found)
		compareVolumes(set.Spec.Volumes, other, path.Child("volumes"), found)
		compareMetadata(set.Spec.PatchPodMetadata, other, path.Child("patchPodMetadata"), found)
	}
}

// canSharePod reports whether both may select the same pod.
func canSharePod(a, b *v1beta1.SidecarSet) bool {
	if a.Spec.Selector == nil || b.Spec.Selector == nil { // a SidecarSet without a selector selects no pod
		return false
	}
	namespaces := a.Spec.NamespaceSelector == nil || b.Spec.NamespaceSelector == nil || selectorsOverlap(a.Spec.NamespaceSelector, b.Spec.NamespaceSelector)
	return namespaces && selectorsOverlap(a.Spec.Selector, b.Spec.Selector)
}

func compareContainers(containers, others []v1beta1.SidecarContainer, name string, path *field.Path, found *rules.Findings) {
	taken := map[string]bool{}
	for i := range others {
		taken[others[i].Name] = true
	}
	for i := range containers {
		if taken[containers[i].Name] {
			found.AddErrors(field.Invalid(path.Index(i).Child("name"), containers[i].Name,
				fmt.Sprintf("SidecarSet %s has a container of that name for the same pods", name)))
		}
	}
}

func compareVolumes(volumes []corev1.Volume, other *v1beta1.SidecarSet, path *field.Path, found *rules.Findings) {
	taken := map[string]*corev1.Volume{}
	for i := range other.Spec.Volumes {
		taken[other.Spec.Volumes[i].Name] = &other.Spec.Volumes[i]
	}
	for i := range volumes {
		if volume := taken[volumes[i].Name]; volume != nil && !equality.Semantic.DeepEqual(volumes[i], *volume) {
			found.AddErrors(field.Invalid(path.Index(i).Child("name"), volumes[i].Name,
				fmt.Sprintf("SidecarSet %s has another volume of that name for the same pods", other.Name)))
		}
	}
}

func compareMetadata(patches []v1beta1.SidecarSetPatchPodMetadata, other *v1beta1.SidecarSet, path *field.Path, found *rules.Findings) {
	taken := map[string]v1beta1.SidecarSetPatchPolicyType{}
	for _, patch := range other.Spec.PatchPodMetadata {
		for key := range patch.Annotations {
			taken[key] = patch.PatchPolicy
		}
	}
	for i, patch := range patches {
		for _, key := range sortedKeys(patch.Annotations) {
			policy, ok := taken[key]
			if ok && (policy == v1beta1.SidecarSetOverwritePatchPolicy || patch.PatchPolicy == v1beta1.SidecarSetOverwritePatchPolicy) {
				found.AddErrors(field.Invalid(path.Index(i).Child("annotations").Key(key), patch.Annotations[key],
					fmt.Sprintf("SidecarSet %s sets that annotation of the same pods", other.Name)))
			}
		}
	}
}
