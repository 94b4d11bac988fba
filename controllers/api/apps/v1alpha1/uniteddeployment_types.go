// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// UnitedDeploymentStatus is the observed state of a UnitedDeployment.
type UnitedDeploymentStatus struct {
	// ObservedGeneration is the generation that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Replicas is how many pods there are in all subsets, less the reserved ones.
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is how many of them are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// UpdatedReplicas is how many are of the updated revision.
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// UpdatedReadyReplicas is how many are of the updated revision and ready.
	// +optional
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas,omitempty"`

	// ReservedPods is how many pods wait where they cannot run while others stand in for them.
	// +optional
	ReservedPods int32 `json:"reservedPods,omitempty"`

	// CurrentRevision is the last revision that all pods were of.
	CurrentRevision string `json:"currentRevision"`

	// CollisionCount makes names of revisions differ if their hashes do not.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// SubsetStatuses are the observed states of the subsets.
	// +optional
	SubsetStatuses []v1beta1.UnitedDeploymentSubsetStatus `json:"subsetStatuses,omitempty"`

	// SubsetReplicas is how many pods each subset has, by its name. It says no more than subsetStatuses.
	// +optional
	SubsetReplicas map[string]int32 `json:"subsetReplicas,omitempty"`

	// UpdateStatus is how far the update is meant to go.
	// +optional
	UpdateStatus *UpdateStatus `json:"updateStatus,omitempty"`

	// Conditions say what the controller met.
	// +optional
	Conditions []v1beta1.UnitedDeploymentCondition `json:"conditions,omitempty"`

	// LabelSelector is the selector as text, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
}

// UpdateStatus is how far an update is meant to go.
type UpdateStatus struct {
	// UpdatedRevision is the revision of the template.
	// +optional
	UpdatedRevision string `json:"updatedRevision,omitempty"`

	// CurrentPartitions are how many pods of each subset are to stay at the old revision, by its name. They say no more
	// than subsetStatuses.
	// +optional
	CurrentPartitions map[string]int32 `json:"currentPartitions,omitempty"`
}

// UnitedDeployment runs one workload in several subsets of the nodes, such as zones, with a number of pods in each.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=ud
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".spec.replicas",description="The desired number of pods."
// +kubebuilder:printcolumn:name="CURRENT",type="integer",JSONPath=".status.replicas",description="The number of pods."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="The number of pods updated."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="The number of pods ready."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
type UnitedDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   v1beta1.UnitedDeploymentSpec `json:"spec,omitempty"`
	Status UnitedDeploymentStatus       `json:"status,omitempty"`
}

// UnitedDeploymentList is a list of UnitedDeployments.
//
// +kubebuilder:object:root=true
type UnitedDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []UnitedDeployment `json:"items"`
}
