// SPDX-License-Identifier: Apache-2.0

package v1beta1

// CompletionPolicyType is whether a job ends.
type CompletionPolicyType string

const (
	// AlwaysCompletionPolicyType ends the job when it is done on all nodes that there are.
	AlwaysCompletionPolicyType CompletionPolicyType = "Always"
	// NeverCompletionPolicyType keeps the job for nodes to come.
	NeverCompletionPolicyType CompletionPolicyType = "Never"
)

// CompletionPolicy says when a job that runs on nodes ends, and what becomes of it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.activeDeadlineSeconds) || !has(self.type) || self.type != 'Never'",message="must be unset for a job that never ends",fieldPath=".activeDeadlineSeconds"
// +kubebuilder:validation:XValidation:rule="!has(self.ttlSecondsAfterFinished) || !has(self.type) || self.type != 'Never'",message="must be unset for a job that never ends",fieldPath=".ttlSecondsAfterFinished"
type CompletionPolicy struct {
	// Type is Always or Never; Always if unset. Never goes with neither of the other fields.
	// +kubebuilder:validation:Enum=Always;Never
	// +optional
	Type CompletionPolicyType `json:"type,omitempty"`

	// ActiveDeadlineSeconds is how long after its start the job may run before it fails; unlimited if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// TTLSecondsAfterFinished is how long after its end the job is deleted, 0 being at once; never if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}
