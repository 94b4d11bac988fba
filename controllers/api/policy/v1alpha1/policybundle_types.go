// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PolicyMode is what becomes of the decisions of a bundle.
type PolicyMode string

// The modes.
const (
	// PolicyModeEnforce carries the decisions out.
	PolicyModeEnforce PolicyMode = "Enforce"
	// PolicyModeShadow makes them beside those that are carried out, counts the differences, and acts on none.
	PolicyModeShadow PolicyMode = "Shadow"
	// PolicyModeCanary carries them out in some namespaces only.
	PolicyModeCanary PolicyMode = "Canary"
)

// PolicyBundleSpec is the policies of a namespace, and what becomes of their decisions.
//
// +kubebuilder:validation:XValidation:rule="[has(self.files), has(self.configMap), has(self.oci), has(self.http)].filter(is, is).size() == 1",message="Exactly one of files, configMap, oci and http says where the policies are from."
// +kubebuilder:validation:XValidation:rule="!has(self.verification) || !has(self.files)",message="Files that stand in the object cannot be signed: leave verification out, or ship the bundle by configMap, oci or http."
type PolicyBundleSpec struct {
	PolicySource `json:",inline"`

	// Verification says whose signature the bundle must have; it needs none if this is left out.
	// +optional
	Verification *PolicyVerification `json:"verification,omitempty"`

	// Mode is Enforce to carry the decisions out, or Shadow to count how they would differ. In Shadow, the revision that was
	// enforced before stays so, unless it is the same.
	//
	// +kubebuilder:validation:Enum=Enforce;Shadow
	// +kubebuilder:default=Enforce
	// +optional
	Mode PolicyMode `json:"mode,omitempty"`

	// RollbackTo is a revision of status.history, or the one that the source has though its sequence is lower than that of
	// the active one. It is enforced for as long as it stands here, whatever the source has.
	//
	// +kubebuilder:validation:Pattern="^[0-9a-f]{6,64}$"
	// +optional
	RollbackTo string `json:"rollbackTo,omitempty"`
}

// PolicyBundle is policies of a namespace: they may only be stricter than those of the platform, and only for what is in
// their namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=pb
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="MODE",type="string",JSONPath=".spec.mode",description="What becomes of its decisions."
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the newest policies have passed the gate and do what the mode says."
// +kubebuilder:printcolumn:name="ENFORCED",type="string",JSONPath=".status.activeRevision",description="The revision being enforced."
// +kubebuilder:printcolumn:name="TRIED",type="string",JSONPath=".status.candidate.revision",description="The revision in shadow."
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="Why it is ready or not."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
// +kubebuilder:printcolumn:name="MESSAGE",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message",description="What is wrong and where, or what stands."
type PolicyBundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PolicyBundleSpec   `json:"spec"`
	Status PolicyBundleStatus `json:"status,omitempty"`
}

// PolicyBundleList is a list of PolicyBundles.
//
// +kubebuilder:object:root=true
type PolicyBundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PolicyBundle `json:"items"`
}

// AnyPolicyBundle is a PolicyBundle or a ClusterPolicyBundle.
//
// +kubebuilder:object:generate=false
type AnyPolicyBundle interface {
	metav1.Object
	runtime.Object
	// DesiredSpec is what the spec says. Callers must not change it.
	DesiredSpec() Wanted
	// GetStatus returns the status.
	GetStatus() *PolicyBundleStatus
}

// KindOf returns the kind of a bundle, also of one that was read without it.
func KindOf(b AnyPolicyBundle) schema.GroupVersionKind {
	if b.GetNamespace() != "" {
		return GroupVersion.WithKind("PolicyBundle")
	}
	return GroupVersion.WithKind("ClusterPolicyBundle")
}

// Wanted is what the spec of a bundle says, of either kind.
//
// +kubebuilder:object:generate=false
type Wanted struct {
	PolicySource
	Verification *PolicyVerification
	Mode         PolicyMode
	// Namespaces are those of a canary; empty in other modes.
	Namespaces []string
	RollbackTo string
}

// DesiredSpec implements AnyPolicyBundle.
func (b *PolicyBundle) DesiredSpec() Wanted {
	s := &b.Spec
	return Wanted{PolicySource: s.PolicySource, Verification: s.Verification, Mode: s.Mode, RollbackTo: s.RollbackTo}
}

// GetStatus implements AnyPolicyBundle.
func (b *PolicyBundle) GetStatus() *PolicyBundleStatus { return &b.Status }

// AllArtifacts are all revisions that are kept: the active one, the candidate, and
// those before.
func (s *PolicyBundleStatus) AllArtifacts() (out []*PolicyArtifact) {
	for _, a := range []*PolicyArtifact{s.Active, s.Candidate, s.Withheld} {
		if a != nil {
			out = append(out, a)
		}
	}
	for i := range s.History {
		out = append(out, &s.History[i])
	}
	return out
}

// FindArtifact is the one of a revision, or of the beginning of it; nil if none is.
func (s *PolicyBundleStatus) FindArtifact(revision string) *PolicyArtifact {
	for _, a := range s.AllArtifacts() {
		if strings.HasPrefix(a.Revision, revision) || strings.HasPrefix(a.Content, revision) {
			return a
		}
	}
	return nil
}

// Is reports whether the artifact is of a content, which may be the beginning of it
// in what an older manager has written.
func (a *PolicyArtifact) Is(content string) bool {
	if a == nil || content == "" {
		return false
	}
	if len(a.Content) == len(content) {
		return a.Content == content
	}
	return a.Revision == content[:min(len(content), len(a.Revision))]
}

// KeptRevisions names the revisions that are kept, for messages.
func (s *PolicyBundleStatus) KeptRevisions() string {
	var out []string
	for _, a := range s.AllArtifacts() {
		out = append(out, a.Revision)
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}
