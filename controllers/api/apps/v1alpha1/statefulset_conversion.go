// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

// newerStatefulSet are the fields that only v1beta1 has. OpenKruise drops them as soon as a v1alpha1 client writes the
// object.
type newerStatefulSet struct {
	VolumeClaimUpdateStrategy            v1beta1.VolumeClaimUpdateStrategy                        `json:"volumeClaimUpdateStrategy,omitzero"`
	ReserveOrdinals                      []intstr.IntOrString                                     `json:"reserveOrdinals,omitempty"`
	Lifecycle                            *v1beta1.Lifecycle                                       `json:"lifecycle,omitempty"`
	ScaleStrategy                        *v1beta1.StatefulSetScaleStrategy                        `json:"scaleStrategy,omitempty"`
	PersistentVolumeClaimRetentionPolicy *v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty"`
	Ordinals                             *v1beta1.StatefulSetOrdinals                             `json:"ordinals,omitempty"`

	UpdatedReadyReplicas     int32                       `json:"updatedReadyReplicas,omitempty"`
	UpdatedAvailableReplicas int32                       `json:"updatedAvailableReplicas,omitempty"`
	VolumeClaims             []v1beta1.VolumeClaimStatus `json:"volumeClaims,omitempty"`
}

// ConvertTo fills the hub.
func (in *StatefulSet) ConvertTo(hub conversion.Hub) error {
	out, ok := hub.(*v1beta1.StatefulSet)
	if !ok {
		return fmt.Errorf("converting to %T: a StatefulSet is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := in.DeepCopy()
	out.ObjectMeta = src.ObjectMeta
	var newer newerStatefulSet
	conversiondata.RestoreFields(&out.Annotations, conversiondata.NewerKey, &newer)
	out.Spec = v1beta1.StatefulSetSpec{
		Replicas: src.Spec.Replicas, Selector: src.Spec.Selector, Template: src.Spec.Template,
		VolumeClaimTemplates: src.Spec.VolumeClaimTemplates, ServiceName: src.Spec.ServiceName,
		PodManagementPolicy: src.Spec.PodManagementPolicy, UpdateStrategy: src.Spec.UpdateStrategy,
		RevisionHistoryLimit: src.Spec.RevisionHistoryLimit,

		VolumeClaimUpdateStrategy: newer.VolumeClaimUpdateStrategy, ReserveOrdinals: newer.ReserveOrdinals,
		Lifecycle: newer.Lifecycle, ScaleStrategy: newer.ScaleStrategy, Ordinals: newer.Ordinals,
		PersistentVolumeClaimRetentionPolicy: newer.PersistentVolumeClaimRetentionPolicy,
	}
	out.Status = v1beta1.StatefulSetStatus{
		ObservedGeneration: src.Status.ObservedGeneration, Replicas: src.Status.Replicas,
		ReadyReplicas: src.Status.ReadyReplicas, AvailableReplicas: src.Status.AvailableReplicas,
		CurrentReplicas: src.Status.CurrentReplicas, UpdatedReplicas: src.Status.UpdatedReplicas,
		CurrentRevision: src.Status.CurrentRevision, UpdateRevision: src.Status.UpdateRevision,
		CollisionCount: src.Status.CollisionCount, Conditions: src.Status.Conditions,
		LabelSelector: src.Status.LabelSelector,

		UpdatedReadyReplicas: newer.UpdatedReadyReplicas, UpdatedAvailableReplicas: newer.UpdatedAvailableReplicas,
		VolumeClaims: newer.VolumeClaims,
	}
	return nil
}

// ConvertFrom reads the hub.
func (in *StatefulSet) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*v1beta1.StatefulSet)
	if !ok {
		return fmt.Errorf("converting from %T: a StatefulSet is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := from.DeepCopy()
	in.ObjectMeta = src.ObjectMeta
	in.Spec = StatefulSetSpec{
		Replicas: src.Spec.Replicas, Selector: src.Spec.Selector, Template: src.Spec.Template,
		VolumeClaimTemplates: src.Spec.VolumeClaimTemplates, ServiceName: src.Spec.ServiceName,
		PodManagementPolicy: src.Spec.PodManagementPolicy, UpdateStrategy: src.Spec.UpdateStrategy,
		RevisionHistoryLimit: src.Spec.RevisionHistoryLimit,
	}
	in.Status = StatefulSetStatus{
		ObservedGeneration: src.Status.ObservedGeneration, Replicas: src.Status.Replicas,
		ReadyReplicas: src.Status.ReadyReplicas, AvailableReplicas: src.Status.AvailableReplicas,
		CurrentReplicas: src.Status.CurrentReplicas, UpdatedReplicas: src.Status.UpdatedReplicas,
		CurrentRevision: src.Status.CurrentRevision, UpdateRevision: src.Status.UpdateRevision,
		CollisionCount: src.Status.CollisionCount, Conditions: src.Status.Conditions,
		LabelSelector: src.Status.LabelSelector,
	}
	return conversiondata.StoreFields(&in.Annotations, conversiondata.NewerKey, newerStatefulSet{
		VolumeClaimUpdateStrategy: src.Spec.VolumeClaimUpdateStrategy, ReserveOrdinals: src.Spec.ReserveOrdinals,
		Lifecycle: src.Spec.Lifecycle, ScaleStrategy: src.Spec.ScaleStrategy, Ordinals: src.Spec.Ordinals,
		PersistentVolumeClaimRetentionPolicy: src.Spec.PersistentVolumeClaimRetentionPolicy,

		UpdatedReadyReplicas:     src.Status.UpdatedReadyReplicas,
		UpdatedAvailableReplicas: src.Status.UpdatedAvailableReplicas,
		VolumeClaims:             src.Status.VolumeClaims,
	})
}
