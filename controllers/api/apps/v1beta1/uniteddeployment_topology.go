// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Topology says which subsets there are, and how pods are spread over them.
// +kubebuilder:validation:XValidation:rule="!has(self.scheduleStrategy) || !has(self.scheduleStrategy.type) || self.scheduleStrategy.type != 'Adaptive' || !has(self.subsets) || self.subsets.all(subset, !has(subset.replicas))",message="specify replicas use minReplicas/maxReplicas to enable adaptive strategy",fieldPath=".subsets"
type Topology struct {
	// Subsets in the order in which they are filled. Their names differ.
	// +optional
	Subsets []Subset `json:"subsets,omitempty"`

	// ScheduleStrategy says what happens when a subset has no room.
	// +optional
	ScheduleStrategy UnitedDeploymentScheduleStrategy `json:"scheduleStrategy,omitempty"`
}

// Subset is a part of the nodes, and what is particular to the pods there.
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || !(has(self.minReplicas) || has(self.maxReplicas))",message="replicas and minReplicas/maxReplicas are mutually exclusive",fieldPath=".replicas"
type Subset struct {
	// Name of the subset: a DNS label.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// NodeSelectorTerm is required of the nodes of the subset, besides what the template requires. It cannot be changed.
	// +optional
	NodeSelectorTerm corev1.NodeSelectorTerm `json:"nodeSelectorTerm,omitempty"`

	// Tolerations are added to those of the template. They cannot be changed.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Replicas is how many pods the subset gets, as a number or as a percentage of all replicas, rounded to the nearest;
	// subsets without it share what is left. It cannot be set together with minReplicas or maxReplicas.
	// +optional
	Replicas *intstr.IntOrString `json:"replicas,omitempty"`

	// MinReplicas is how many pods the subset gets before any other gets more than its own, as a number or as a
	// percentage of all replicas; 0 if unset. Earlier subsets come first where there are not enough.
	// +optional
	MinReplicas *intstr.IntOrString `json:"minReplicas,omitempty"`

	// MaxReplicas limits the pods of the subset, as a number or as a percentage of all replicas. Unlimited if unset, as
	// one subset at least must be.
	// +optional
	MaxReplicas *intstr.IntOrString `json:"maxReplicas,omitempty"`

	// Patch is a strategic merge patch of the pods' template, made after all else.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	Patch runtime.RawExtension `json:"patch,omitzero"`
}

// UnitedDeploymentScheduleStrategyType is what happens when a subset has no room.
// +kubebuilder:validation:Enum=Adaptive;Fixed;""
type UnitedDeploymentScheduleStrategyType string

const (
	// AdaptiveUnitedDeploymentScheduleStrategyType moves pods to the subsets that come after it.
	AdaptiveUnitedDeploymentScheduleStrategyType UnitedDeploymentScheduleStrategyType = "Adaptive"
	// FixedUnitedDeploymentScheduleStrategyType lets pods wait for room.
	FixedUnitedDeploymentScheduleStrategyType UnitedDeploymentScheduleStrategyType = "Fixed"
)

// Defaults of AdaptiveUnitedDeploymentStrategy.
const (
	DefaultRescheduleCriticalSeconds = 30
	DefaultUnschedulableDuration     = 300
)

// UnitedDeploymentScheduleStrategy says what happens when a subset has no room.
type UnitedDeploymentScheduleStrategy struct {
	// Type is Fixed or Adaptive; Fixed if unset.
	// +optional
	Type UnitedDeploymentScheduleStrategyType `json:"type,omitempty"`

	// Adaptive is of type Adaptive only.
	// +optional
	Adaptive *AdaptiveUnitedDeploymentStrategy `json:"adaptive,omitempty"`
}

// AdaptiveUnitedDeploymentStrategy says how pods move to subsets that have room.
type AdaptiveUnitedDeploymentStrategy struct {
	// RescheduleCriticalSeconds is how long a pod may find no node before it is moved; 30 if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	RescheduleCriticalSeconds *int32 `json:"rescheduleCriticalSeconds,omitempty"`

	// UnschedulableDuration is for how many seconds a subset that had no room gets no more pods; 300 if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	UnschedulableDuration *int32 `json:"unschedulableDuration,omitempty"`

	// ReserveUnschedulablePods leaves pods that find no node where they are and starts others elsewhere, which go when
	// the first can run. Only Deployments and CloneSets can do so.
	// +optional
	ReserveUnschedulablePods bool `json:"reserveUnschedulablePods,omitempty"`
}

// UpdateStrategyType is who says how far the update of a UnitedDeployment goes.
// +kubebuilder:validation:Enum=Manual;""
type UpdateStrategyType string

// ManualUpdateStrategyType lets a user say it for each subset. It is the only one.
const ManualUpdateStrategyType UpdateStrategyType = "Manual"

// UnitedDeploymentUpdateStrategy says how subsets are brought to a new template.
type UnitedDeploymentUpdateStrategy struct {
	// Type is Manual, also if unset.
	// +optional
	Type UpdateStrategyType `json:"type,omitempty"`

	// ManualUpdate says how far the update of each subset goes.
	// +optional
	ManualUpdate *ManualUpdate `json:"manualUpdate,omitempty"`
}

// ManualUpdate says how far the update of each subset goes.
type ManualUpdate struct {
	// Partitions are, by subset, how many pods stay at the old revision; 0 for a subset that is not named. A number above
	// the subset's replicas is as good as all of them.
	// +optional
	Partitions map[string]int32 `json:"partitions,omitempty"`
}
