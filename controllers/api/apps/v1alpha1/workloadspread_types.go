// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// WorkloadSpreadSpec is the desired state of a WorkloadSpread.
// +kubebuilder:validation:XValidation:rule="size(self.targetRef.apiVersion) > 0 && size(self.targetRef.kind) > 0 && size(self.targetRef.name) > 0",message="empty TargetReference is not valid for WorkloadSpread.",fieldPath=".targetRef"
// +kubebuilder:validation:XValidation:rule="(self.targetRef.apiVersion.contains('/') ? self.targetRef.apiVersion.split('/')[0] : '-') == (oldSelf.targetRef.apiVersion.contains('/') ? oldSelf.targetRef.apiVersion.split('/')[0] : '-') && self.targetRef.kind == oldSelf.targetRef.kind && self.targetRef.name == oldSelf.targetRef.name",message="change TargetReference is not permitted for WorkloadSpread",fieldPath=".targetRef"
// +kubebuilder:validation:XValidation:rule="!has(self.scheduleStrategy) || !has(self.scheduleStrategy.type) || self.scheduleStrategy.type != 'Adaptive' || size(self.subsets) < 2 || !has(self.subsets[size(self.subsets) - 1].maxReplicas)",message="maxReplicas of the last subset must be unset for the Adaptive strategy",fieldPath=".subsets"
// +kubebuilder:validation:XValidation:rule="!has(self.scheduleStrategy) || !has(self.scheduleStrategy.type) || self.scheduleStrategy.type != 'Adaptive' || !has(self.scheduleStrategy.adaptive) || !has(self.scheduleStrategy.adaptive.rescheduleCriticalSeconds) || size(self.subsets) < 2 || self.scheduleStrategy.adaptive.rescheduleCriticalSeconds <= 295 / (size(self.subsets) - 1)",message="rescheduleCriticalSeconds must be at most 295 divided by the number of subsets less one",fieldPath=".scheduleStrategy.adaptive.rescheduleCriticalSeconds"
type WorkloadSpreadSpec struct {
	// TargetReference is the workload whose pods are spread. It cannot be changed, and no other WorkloadSpread may have
	// the same.
	TargetReference v1beta1.TargetReference `json:"targetRef"`

	// TargetFilter limits what is spread to some of the pods of the workload.
	// +optional
	TargetFilter *v1beta1.TargetFilter `json:"targetFilter,omitempty"`

	// Subsets in the order in which they are filled: at least one, and their names differ.
	// +kubebuilder:validation:XValidation:rule="size(self) >= 1",message="subsets number must >= 1 in WorkloadSpread"
	Subsets []WorkloadSpreadSubset `json:"subsets"`

	// ScheduleStrategy says what happens when a subset has no room.
	// +optional
	ScheduleStrategy v1beta1.WorkloadSpreadScheduleStrategy `json:"scheduleStrategy,omitempty"`
}

// WorkloadSpreadSubset is a part of the nodes, and what is particular to the pods there.
type WorkloadSpreadSubset struct {
	// Name of the subset.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// RequiredNodeSelectorTerm is required of the nodes of the subset, besides what the pod itself requires.
	// +optional
	RequiredNodeSelectorTerm *corev1.NodeSelectorTerm `json:"requiredNodeSelectorTerm,omitempty"`

	// PreferredNodeSelectorTerms are preferred, besides what the pod itself prefers.
	// +optional
	PreferredNodeSelectorTerms []corev1.PreferredSchedulingTerm `json:"preferredNodeSelectorTerms,omitempty"`

	// Tolerations are added to those of the pod.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// MaxReplicas limits the pods of the subset, as a number or as a percentage of the workload's replicas, rounded up;
	// unlimited if unset. It is a number in all subsets or a percentage in all of them.
	// +optional
	MaxReplicas *intstr.IntOrString `json:"maxReplicas,omitempty"`

	// Patch is a strategic merge patch of the pod.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	Patch runtime.RawExtension `json:"patch,omitzero"`
}

// WorkloadSpreadStatus is the observed state of a WorkloadSpread.
type WorkloadSpreadStatus struct {
	// ObservedGeneration is the generation that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// SubsetStatuses are the observed states of the subsets, in their order.
	// +optional
	SubsetStatuses []WorkloadSpreadSubsetStatus `json:"subsetStatuses,omitempty"`

	// VersionedSubsetStatuses are the same for each version of the workload that has pods.
	// Only Deployments and ReplicaSets have versions here; the key is versionIgnored for pods of others.
	// +optional
	VersionedSubsetStatuses map[string][]WorkloadSpreadSubsetStatus `json:"versionedSubsetStatuses,omitempty"`

	// Conditions say what the controller met.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// WorkloadSpreadSubsetStatus is the observed state of a subset.
type WorkloadSpreadSubsetStatus struct {
	// Name of the subset.
	Name string `json:"name"`

	// Replicas is how many pods the subset has.
	Replicas int32 `json:"replicas"`

	// MissingReplicas is how many more it may get; -1 if there is no limit.
	MissingReplicas int32 `json:"missingReplicas"`

	// CreatingPods are pods that were let in and have not been seen since, with the time. They count as pods.
	// +optional
	CreatingPods map[string]metav1.Time `json:"creatingPods,omitempty"`

	// DeletingPods are pods whose deletion was let in and that are still there, with the time. They do not count as pods.
	// +optional
	DeletingPods map[string]metav1.Time `json:"deletingPods,omitempty"`

	// Conditions of the subset.
	// +optional
	Conditions []WorkloadSpreadSubsetCondition `json:"conditions,omitempty"`
}

// WorkloadSpreadSubsetCondition is one thing that the controller met in a subset.
type WorkloadSpreadSubsetCondition struct {
	// Type of the condition.
	Type WorkloadSpreadSubsetConditionType `json:"type"`
	// Status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`
	// Reason in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message in whole sentences.
	// +optional
	Message string `json:"message,omitempty"`
}

// WorkloadSpreadSubsetConditionType is the type of a condition of a subset.
type WorkloadSpreadSubsetConditionType string

// WorkloadSpread spreads the pods of a workload over subsets of the nodes, such as zones, as they are created.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=ws
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="WorkloadName",type="string",JSONPath=".spec.targetRef.name",description="The name of the workload."
// +kubebuilder:printcolumn:name="WorkloadKind",type="string",JSONPath=".spec.targetRef.kind",description="The kind of the workload."
// +kubebuilder:printcolumn:name="Adaptive",type="boolean",JSONPath=".spec.scheduleStrategy.type[?(@ == \"Adaptive\")]",description="Whether pods leave a subset that has no room."
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
type WorkloadSpread struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WorkloadSpreadSpec   `json:"spec,omitempty"`
	Status WorkloadSpreadStatus `json:"status,omitempty"`
}

// WorkloadSpreadList is a list of WorkloadSpreads.
//
// +kubebuilder:object:root=true
type WorkloadSpreadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []WorkloadSpread `json:"items"`
}
