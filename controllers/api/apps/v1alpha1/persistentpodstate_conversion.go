// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// ConvertTo fills the hub. Retention policies and weights that v1beta1 would refuse go through as they are: the API server
// accepts a stored value that an update does not change, and an error about it should name it.
func (in *PersistentPodState) ConvertTo(hub conversion.Hub) error {
	out, ok := hub.(*v1beta1.PersistentPodState)
	if !ok {
		return fmt.Errorf("converting to %T: a PersistentPodState is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := in.DeepCopy()
	out.ObjectMeta, out.Status = src.ObjectMeta, src.Status
	out.Spec = v1beta1.PersistentPodStateSpec{
		TargetReference: src.Spec.TargetReference,
		PreferredPersistentTopology: convertEach(src.Spec.PreferredPersistentTopology, func(t *PreferredTopologyTerm) v1beta1.PreferredTopologyTerm {
			return v1beta1.PreferredTopologyTerm{Weight: t.Weight, Preference: v1beta1.NodeTopologyTerm{Keys: t.Preference.NodeTopologyKeys}}
		}),
		PersistentPodAnnotations:          src.Spec.PersistentPodAnnotations,
		PersistentPodStateRetentionPolicy: v1beta1.PersistentPodStateRetentionPolicyType(src.Spec.PersistentPodStateRetentionPolicy),
	}
	if term := src.Spec.RequiredPersistentTopology; term != nil {
		out.Spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: term.NodeTopologyKeys}
	}
	return nil
}

// ConvertFrom reads the hub.
func (in *PersistentPodState) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*v1beta1.PersistentPodState)
	if !ok {
		return fmt.Errorf("converting from %T: a PersistentPodState is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := from.DeepCopy()
	in.ObjectMeta, in.Status = src.ObjectMeta, src.Status
	in.Spec = PersistentPodStateSpec{
		TargetReference: src.Spec.TargetReference,
		PreferredPersistentTopology: convertEach(src.Spec.PreferredPersistentTopology, func(t *v1beta1.PreferredTopologyTerm) PreferredTopologyTerm {
			return PreferredTopologyTerm{Weight: t.Weight, Preference: NodeTopologyTerm{NodeTopologyKeys: t.Preference.Keys}}
		}),
		PersistentPodAnnotations:          src.Spec.PersistentPodAnnotations,
		PersistentPodStateRetentionPolicy: PersistentPodStateRetentionPolicyType(src.Spec.PersistentPodStateRetentionPolicy),
	}
	if term := src.Spec.RequiredPersistentTopology; term != nil {
		in.Spec.RequiredPersistentTopology = &NodeTopologyTerm{NodeTopologyKeys: term.Keys}
	}
	return nil
}
