// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// ConvertTo fills the hub. The label of the custom version stays on it, as one that v1beta1 users may select by.
func (in *SidecarSet) ConvertTo(hub conversion.Hub) error {
	out, ok := hub.(*v1beta1.SidecarSet)
	if !ok {
		return fmt.Errorf("converting to %T: a SidecarSet is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := in.DeepCopy()
	out.ObjectMeta, out.Status = src.ObjectMeta, src.Status
	out.Spec = v1beta1.SidecarSetSpec{
		Selector: src.Spec.Selector, InitContainers: src.Spec.InitContainers, Containers: src.Spec.Containers,
		Volumes: src.Spec.Volumes, ImagePullSecrets: src.Spec.ImagePullSecrets, UpdateStrategy: src.Spec.UpdateStrategy,
		InjectionStrategy: src.Spec.InjectionStrategy, RevisionHistoryLimit: src.Spec.RevisionHistoryLimit,
		PatchPodMetadata: src.Spec.PatchPodMetadata,
	}
	out.Spec.CustomVersion = versionToHub(&out.ObjectMeta)
	namespaces := sidecarSetNamespaces{Namespace: src.Spec.Namespace, NamespaceSelector: src.Spec.NamespaceSelector}
	var err error
	out.Spec.NamespaceSelector, err = namespacesToHub(namespaces, &out.ObjectMeta)
	return err
}

// ConvertFrom reads the hub.
func (in *SidecarSet) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*v1beta1.SidecarSet)
	if !ok {
		return fmt.Errorf("converting from %T: a SidecarSet is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := from.DeepCopy()
	in.ObjectMeta, in.Status = src.ObjectMeta, src.Status
	namespaces := namespacesFromHub(src.Spec.NamespaceSelector, &in.ObjectMeta)
	in.Spec = SidecarSetSpec{
		Selector: src.Spec.Selector, Namespace: namespaces.Namespace, NamespaceSelector: namespaces.NamespaceSelector,
		InitContainers: src.Spec.InitContainers, Containers: src.Spec.Containers,
		Volumes: src.Spec.Volumes, ImagePullSecrets: src.Spec.ImagePullSecrets, UpdateStrategy: src.Spec.UpdateStrategy,
		InjectionStrategy: src.Spec.InjectionStrategy, RevisionHistoryLimit: src.Spec.RevisionHistoryLimit,
		PatchPodMetadata: src.Spec.PatchPodMetadata,
	}
	return versionFromHub(src.Spec.CustomVersion, &in.ObjectMeta)
}
