// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// PersistentPodStateSpec is the desired state of a PersistentPodState.
// +kubebuilder:validation:XValidation:rule="size(self.targetRef.apiVersion) > 0 && size(self.targetRef.kind) > 0 && size(self.targetRef.name) > 0",message="apiVersion, kind and name are required",fieldPath=".targetRef"
// +kubebuilder:validation:XValidation:rule="has(self.requiredPersistentTopology) || (has(self.preferredPersistentTopology) && size(self.preferredPersistentTopology) > 0)",message="at least one of requiredPersistentTopology and preferredPersistentTopology is required"
type PersistentPodStateSpec struct {
	// TargetReference is the StatefulSet whose pods are remembered. It cannot be changed, and no other PersistentPodState
	// may have the same.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="targetRef is immutable"
	TargetReference v1beta1.TargetReference `json:"targetRef"`

	// RequiredPersistentTopology are the node labels whose values a pod must find again. This or
	// preferredPersistentTopology must be set.
	// +optional
	RequiredPersistentTopology *NodeTopologyTerm `json:"requiredPersistentTopology,omitempty"`

	// PreferredPersistentTopology are node labels whose values a pod finds again if it can.
	// +optional
	PreferredPersistentTopology []PreferredTopologyTerm `json:"preferredPersistentTopology,omitempty"`

	// PersistentPodAnnotations are annotations of the pod that are remembered, too. They are not put back on a pod.
	// +optional
	PersistentPodAnnotations []v1beta1.PersistentPodAnnotation `json:"persistentPodAnnotations,omitempty"`

	// PersistentPodStateRetentionPolicy is WhenScaled or WhenDeleted; WhenScaled if unset.
	// +optional
	PersistentPodStateRetentionPolicy PersistentPodStateRetentionPolicyType `json:"persistentPodStateRetentionPolicy,omitempty"`
}

// PersistentPodStateRetentionPolicyType is when a pod is forgotten. Any text may stand here in this version; what is not
// WhenDeleted is WhenScaled.
type PersistentPodStateRetentionPolicyType string

// NodeTopologyTerm names node labels.
type NodeTopologyTerm struct {
	// NodeTopologyKeys are the keys of the labels. One that the node of the pod did not have is not looked for.
	// +kubebuilder:validation:MinItems=1
	NodeTopologyKeys []string `json:"nodeTopologyKeys"`
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

// PersistentPodState brings pods of a StatefulSet back to where they ran before.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type PersistentPodState struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PersistentPodStateSpec           `json:"spec,omitempty"`
	Status v1beta1.PersistentPodStateStatus `json:"status,omitempty"`
}

// PersistentPodStateList is a list of PersistentPodStates.
//
// +kubebuilder:object:root=true
type PersistentPodStateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PersistentPodState `json:"items"`
}
