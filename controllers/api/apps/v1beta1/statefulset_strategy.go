// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DefaultStatefulSetMaxUnavailable is used if maxUnavailable of the update is unset.
const DefaultStatefulSetMaxUnavailable = 1

// MaxStatefulSetMinReadySeconds is the most that minReadySeconds may be.
const MaxStatefulSetMinReadySeconds = 300

// StatefulSetUpdateStrategy says how pods are brought to a new template.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdate) || !has(self.type) || self.type != 'OnDelete'",message="only allowed for updateStrategy RollingUpdate",fieldPath=".rollingUpdate"
type StatefulSetUpdateStrategy struct {
	// Type is RollingUpdate or OnDelete; RollingUpdate if unset. OnDelete updates a pod when a client deletes it.
	// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
	// +optional
	Type appsv1.StatefulSetUpdateStrategyType `json:"type,omitempty"`

	// RollingUpdate is of type RollingUpdate only.
	// +optional
	RollingUpdate *RollingUpdateStatefulSetStrategy `json:"rollingUpdate,omitempty"`
}

// RollingUpdateStatefulSetStrategy says how the controller updates pods by and by, highest ordinal first.
type RollingUpdateStatefulSetStrategy struct {
	// PodUpdatePolicy is ReCreate, InPlaceIfPossible or InPlaceOnly; ReCreate if unset. The last two need the readiness
	// gate InPlaceUpdateReady in the template.
	// +kubebuilder:validation:Enum=ReCreate;InPlaceIfPossible;InPlaceOnly
	// +optional
	PodUpdatePolicy PodUpdatePolicyType `json:"podUpdatePolicy,omitempty"`

	// Partition is how many pods stay at the old revision, lowest ordinals first; 0 if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Partition *int32 `json:"partition,omitempty"`

	// MaxUnavailable is how many pods may be unavailable, as a number or as a percentage of replicas, rounded down but
	// at least 1; 1 if unset. Anything but the number 1 needs podManagementPolicy Parallel.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// Paused stops the update. Scaling goes on.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// UnorderedUpdate updates pods in an order of its own instead of by ordinal. It needs podManagementPolicy Parallel.
	// +optional
	UnorderedUpdate *UnorderedUpdateStrategy `json:"unorderedUpdate,omitempty"`

	// InPlaceUpdateStrategy says how a pod is changed in place. The fields imagePreDownload* are ignored here: the
	// annotations apps.kruise.io/image-predownload-* of the set count.
	// +optional
	InPlaceUpdateStrategy *InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`

	// MinReadySeconds is how long a pod must be ready before it is available; 0 if unset, at most 300.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule="self <= 300",message="must be no more than 300 seconds"
	// +optional
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
}

// UnorderedUpdateStrategy updates pods in another order than by ordinal.
type UnorderedUpdateStrategy struct {
	// PriorityStrategy says which pods come first. Pods of the same priority go by ordinal, highest first.
	// +optional
	PriorityStrategy *UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`
}

// StatefulSetScaleStrategy says how pods are created.
type StatefulSetScaleStrategy struct {
	// MaxUnavailable limits how many pods may be unavailable while pods are created, as a number or as a percentage of
	// replicas, rounded down but at least 1. Unlimited if unset. It needs podManagementPolicy Parallel.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// VolumeClaimUpdateStrategyType is when claims follow a change of their template.
type VolumeClaimUpdateStrategyType string

const (
	// OnPodRollingUpdateVolumeClaimUpdateStrategyType lets a claim grow when its pod is updated. Only the size may change.
	OnPodRollingUpdateVolumeClaimUpdateStrategyType VolumeClaimUpdateStrategyType = "OnPodRollingUpdate"
	// OnDeleteVolumeClaimUpdateStrategyType leaves a claim unchanged until a client deletes it.
	OnDeleteVolumeClaimUpdateStrategyType VolumeClaimUpdateStrategyType = "OnDelete"
)

// VolumeClaimUpdateStrategy says when claims follow a change of their template.
type VolumeClaimUpdateStrategy struct {
	// Type is OnPodRollingUpdate or OnDelete; OnDelete if unset. It needs the feature gate StatefulSetAutoResizePVCGate.
	// +kubebuilder:validation:Enum="";OnPodRollingUpdate;OnDelete
	// +optional
	Type VolumeClaimUpdateStrategyType `json:"type,omitempty"`
}

// StatefulSetPersistentVolumeClaimRetentionPolicy says what becomes of claims that no pod uses any more. It needs the
// feature gate StatefulSetAutoDeletePVC.
type StatefulSetPersistentVolumeClaimRetentionPolicy struct {
	// WhenDeleted is Retain or Delete, for all claims, when the set is deleted; Retain if unset.
	// +kubebuilder:validation:Enum="";Retain;Delete
	// +optional
	WhenDeleted appsv1.PersistentVolumeClaimRetentionPolicyType `json:"whenDeleted,omitempty"`
	// WhenScaled is Retain or Delete, for the claims of a pod that is not wanted any more; Retain if unset.
	// +kubebuilder:validation:Enum="";Retain;Delete
	// +optional
	WhenScaled appsv1.PersistentVolumeClaimRetentionPolicyType `json:"whenScaled,omitempty"`
}

// StatefulSetOrdinals says which ordinals pods get.
type StatefulSetOrdinals struct {
	// Start is the lowest ordinal; 0 if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Start int32 `json:"start,omitempty"`
}
