// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterPolicyBundleSpec is the policies of the platform, and what becomes of their decisions.
//
// +kubebuilder:validation:XValidation:rule="[has(self.files), has(self.configMap), has(self.oci), has(self.http)].filter(is, is).size() == 1",message="Exactly one of files, configMap, oci and http says where the policies are from."
// +kubebuilder:validation:XValidation:rule="!has(self.verification) || !has(self.files)",message="Files that stand in the object cannot be signed: leave verification out, or ship the bundle by configMap, oci or http."
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'Canary' || has(self.canary)",message="The mode Canary needs canary.namespaces, which says where the policies are enforced first."
type ClusterPolicyBundleSpec struct {
	PolicySource `json:",inline"`

	// Verification says whose signature the bundle must have; it needs none if this is left out.
	// +optional
	Verification *PolicyVerification `json:"verification,omitempty"`

	// Mode is Enforce to carry the decisions out, Shadow to count how they would differ, or Canary to carry them out in
	// canary.namespaces only. In Shadow and Canary, the revision that was enforced before stays so, unless it is the same.
	//
	// +kubebuilder:validation:Enum=Enforce;Shadow;Canary
	// +kubebuilder:default=Enforce
	// +optional
	Mode PolicyMode `json:"mode,omitempty"`

	// Canary says where a canary is enforced. It has no effect in another mode, so that a canary is promoted by the mode alone.
	// +optional
	Canary *PolicyCanary `json:"canary,omitempty"`

	// RollbackTo is a revision of status.history, or the one that the source has though its sequence is lower than that of
	// the active one. It is enforced for as long as it stands here, whatever the source has.
	//
	// +kubebuilder:validation:Pattern="^[0-9a-f]{6,64}$"
	// +optional
	RollbackTo string `json:"rollbackTo,omitempty"`
}

// PolicyCanary says where a canary is enforced.
type PolicyCanary struct {
	// Namespaces in which the policies are enforced.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	Namespaces []string `json:"namespaces"`
}

// ClusterPolicyBundle is a bundle of policies of the platform: it extends or replaces decisions in the whole cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=cpb
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="MODE",type="string",JSONPath=".spec.mode",description="What becomes of its decisions."
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the newest policies have passed the gate and do what the mode says."
// +kubebuilder:printcolumn:name="ENFORCED",type="string",JSONPath=".status.activeRevision",description="The revision being enforced."
// +kubebuilder:printcolumn:name="TRIED",type="string",JSONPath=".status.candidate.revision",description="The revision in shadow, or in some namespaces only."
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="Why it is ready or not."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
// +kubebuilder:printcolumn:name="MESSAGE",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message",description="What is wrong and where, or what stands."
type ClusterPolicyBundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterPolicyBundleSpec `json:"spec"`
	Status PolicyBundleStatus      `json:"status,omitempty"`
}

// ClusterPolicyBundleList is a list of ClusterPolicyBundles.
//
// +kubebuilder:object:root=true
type ClusterPolicyBundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterPolicyBundle `json:"items"`
}

// DesiredSpec implements AnyPolicyBundle.
func (b *ClusterPolicyBundle) DesiredSpec() Wanted {
	s := &b.Spec
	w := Wanted{PolicySource: s.PolicySource, Verification: s.Verification, Mode: s.Mode, RollbackTo: s.RollbackTo}
	if s.Mode == PolicyModeCanary && s.Canary != nil {
		w.Namespaces = s.Canary.Namespaces
	}
	return w
}

// GetStatus implements AnyPolicyBundle.
func (b *ClusterPolicyBundle) GetStatus() *PolicyBundleStatus { return &b.Status }
