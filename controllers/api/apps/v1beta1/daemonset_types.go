// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DefaultDaemonSetBurstReplicas is used if burstReplicas is unset.
const DefaultDaemonSetBurstReplicas = 250

// DaemonSetSpec is the desired state of a DaemonSet.
type DaemonSetSpec struct {
	// Selector says which pods are the DaemonSet's. It must match the labels of the template and cannot be changed.
	Selector *metav1.LabelSelector `json:"selector"`

	// Template of the pods. There is one on every node that its node selector and affinity match and whose taints it
	// tolerates.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template corev1.PodTemplateSpec `json:"template"`

	// UpdateStrategy says how pods are brought to a new template.
	// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdate) || !has(self.rollingUpdate.rollingUpdateType) || self.rollingUpdate.rollingUpdateType in ['Standard', 'InPlaceIfPossible']",message="must be Standard or InPlaceIfPossible",fieldPath=".rollingUpdate.rollingUpdateType"
	// +optional
	UpdateStrategy DaemonSetUpdateStrategy `json:"updateStrategy,omitempty"`

	// ScaleStrategy says how pods are created.
	// +optional
	ScaleStrategy DaemonSetScaleStrategy `json:"scaleStrategy,omitzero"`

	// MinReadySeconds is how long a pod must be ready before it is available; 0 if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// BurstReplicas is how many pods may be created, and how many deleted, at once, as a number or as a percentage of
	// the nodes that should have one, rounded down; 250 if unset.
	// +optional
	BurstReplicas *intstr.IntOrString `json:"burstReplicas,omitempty"`

	// RevisionHistoryLimit is how many revisions that no pod runs are kept; 10 if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// Lifecycle holds pods before they are deleted. The hook inPlaceUpdate is refused.
	// +kubebuilder:validation:XValidation:rule="!has(self.inPlaceUpdate)",message="inPlaceUpdate hook has not supported yet",fieldPath=".inPlaceUpdate"
	// +optional
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`
}

// DaemonSetScaleStrategy says how pods are created.
type DaemonSetScaleStrategy struct {
	// PartitionedScaling lets the partition of the update limit the creation of pods as well: nodes get their pods
	// progressively, as the partition is lowered.
	// +optional
	PartitionedScaling bool `json:"partitionedScaling,omitempty"`
}

// DaemonSetStatus is the observed state of a DaemonSet.
type DaemonSetStatus struct {
	// ObservedGeneration is the generation that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// DesiredNumberScheduled is how many nodes should have a pod.
	DesiredNumberScheduled int32 `json:"desiredNumberScheduled"`

	// CurrentNumberScheduled is how many of them have one.
	CurrentNumberScheduled int32 `json:"currentNumberScheduled"`

	// NumberMisscheduled is how many nodes have a pod and should not.
	NumberMisscheduled int32 `json:"numberMisscheduled"`

	// NumberReady is how many nodes that should have a pod have a ready one.
	NumberReady int32 `json:"numberReady"`

	// UpdatedNumberScheduled is how many nodes that should have a pod have one of the update revision.
	UpdatedNumberScheduled int32 `json:"updatedNumberScheduled"`

	// NumberAvailable is how many nodes that should have a pod have one that has been ready for minReadySeconds.
	// +optional
	NumberAvailable int32 `json:"numberAvailable,omitempty"`

	// NumberUnavailable is how many nodes should have an available pod and have none.
	// +optional
	NumberUnavailable int32 `json:"numberUnavailable,omitempty"`

	// CurrentRevision is the name of the revision that all nodes that should have a pod ran last. While an update is held new pods are
	// of it.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// UpdateRevision is the hash of the revision of the template.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`

	// CollisionCount makes names of revisions differ if their hashes do not.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// Conditions say what the controller met.
	// +optional
	Conditions []WorkloadCondition `json:"conditions,omitempty"`
}

// DaemonSet runs a pod on every node that fits, and updates pods in place, with a surge, or in parts.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=daemon;ads
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".status.desiredNumberScheduled",description="The number of nodes that should have a pod."
// +kubebuilder:printcolumn:name="CURRENT",type="integer",JSONPath=".status.currentNumberScheduled",description="The number of them that have one."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.numberReady",description="The number of pods ready."
// +kubebuilder:printcolumn:name="UP-TO-DATE",type="integer",JSONPath=".status.updatedNumberScheduled",description="The number of pods updated."
// +kubebuilder:printcolumn:name="AVAILABLE",type="integer",JSONPath=".status.numberAvailable",description="The number of pods available."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
// +kubebuilder:printcolumn:name="CONTAINERS",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].name",description="The containers of the template."
// +kubebuilder:printcolumn:name="IMAGES",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].image",description="The images of the template."
type DaemonSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DaemonSetSpec   `json:"spec,omitempty"`
	Status DaemonSetStatus `json:"status,omitempty"`
}

// Hub marks DaemonSet as the version that all others are converted through.
func (*DaemonSet) Hub() {}

// DaemonSetList is a list of DaemonSets.
//
// +kubebuilder:object:root=true
type DaemonSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DaemonSet `json:"items"`
}
