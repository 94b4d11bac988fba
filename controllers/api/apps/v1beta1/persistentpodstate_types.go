// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PersistentPodStateSpec is the desired state of a PersistentPodState.
// +kubebuilder:validation:XValidation:rule="size(self.targetRef.apiVersion) > 0 && size(self.targetRef.kind) > 0 && size(self.targetRef.name) > 0",message="apiVersion, kind and name are required",fieldPath=".targetRef"
// +kubebuilder:validation:XValidation:rule="has(self.requiredPersistentTopology) || (has(self.preferredPersistentTopology) && size(self.preferredPersistentTopology) > 0)",message="at least one of requiredPersistentTopology and preferredPersistentTopology is required"
type PersistentPodStateSpec struct {
	// TargetReference is the StatefulSet whose pods are remembered. It cannot be changed, and no other PersistentPodState
	// may have the same.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="targetRef is immutable"
	TargetReference TargetReference `json:"targetRef"`

	// RequiredPersistentTopology are the node labels whose values a pod must find again. This or
	// preferredPersistentTopology must be set.
	// +optional
	RequiredPersistentTopology *NodeTopologyTerm `json:"requiredPersistentTopology,omitempty"`

	// PreferredPersistentTopology are node labels whose values a pod finds again if it can.
	// +optional
	PreferredPersistentTopology []PreferredTopologyTerm `json:"preferredPersistentTopology,omitempty"`

	// PersistentPodAnnotations are annotations of the pod that are remembered, too. They are not put back on a pod.
	// +optional
	PersistentPodAnnotations []PersistentPodAnnotation `json:"persistentPodAnnotations,omitempty"`

	// PersistentPodStateRetentionPolicy is WhenScaled or WhenDeleted; WhenScaled if unset.
	// +optional
	PersistentPodStateRetentionPolicy PersistentPodStateRetentionPolicyType `json:"persistentPodStateRetentionPolicy,omitempty"`
}

// PersistentPodStateRetentionPolicyType is when a pod is forgotten.
// +kubebuilder:validation:Enum=WhenScaled;WhenDeleted
type PersistentPodStateRetentionPolicyType string

const (
	// PersistentPodStateRetentionPolicyWhenScaled forgets a pod when the StatefulSet is scaled in below it, too.
	PersistentPodStateRetentionPolicyWhenScaled PersistentPodStateRetentionPolicyType = "WhenScaled"
	// PersistentPodStateRetentionPolicyWhenDeleted forgets pods only when their StatefulSet is deleted.
	PersistentPodStateRetentionPolicyWhenDeleted PersistentPodStateRetentionPolicyType = "WhenDeleted"
)

// NodeTopologyTerm names node labels.
type NodeTopologyTerm struct {
	// Keys of the labels. One that the node of the pod did not have is not looked for.
	// +kubebuilder:validation:MinItems=1
	Keys []string `json:"keys"`
}

// PreferredTopologyTerm names node labels, and how much they matter.
type PreferredTopologyTerm struct {
	// Weight of the term in the choice of a node, as in the preferences of a pod's node affinity.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	// Preference are the labels, whose values must all be found.
	Preference NodeTopologyTerm `json:"preference"`
}

// PersistentPodAnnotation names an annotation of the pod.
type PersistentPodAnnotation struct {
	// Key of the annotation.
	Key string `json:"key"`
}

// PersistentPodStateStatus is the observed state of a PersistentPodState.
type PersistentPodStateStatus struct {
	// ObservedGeneration is the generation that this status is of.
	ObservedGeneration int64 `json:"observedGeneration"`

	// PodStates is what is remembered of each pod, by its name.
	// +optional
	PodStates map[string]PodState `json:"podStates,omitempty"`

	// Conditions say what the controller met.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PodState is what is remembered of a pod.
type PodState struct {
	// NodeName is the node where the pod was last ready.
	// +optional
	NodeName string `json:"nodeName,omitempty"`

	// NodeTopologyLabels are the labels of that node that the spec names.
	// +optional
	NodeTopologyLabels map[string]string `json:"nodeTopologyLabels,omitempty"`

	// Annotations are the annotations of the pod that the spec names.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PersistentPodState brings pods of a StatefulSet back to where they ran before.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
type PersistentPodState struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PersistentPodStateSpec   `json:"spec,omitempty"`
	Status PersistentPodStateStatus `json:"status,omitempty"`
}

// Hub marks PersistentPodState as the version that all others are converted through.
func (*PersistentPodState) Hub() {}

// PersistentPodStateList is a list of PersistentPodStates.
//
// +kubebuilder:object:root=true
type PersistentPodStateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PersistentPodState `json:"items"`
}
