// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// FailurePolicyType is what a BroadcastJob does when a pod has failed.
type FailurePolicyType string

const (
	// FailurePolicyTypeContinue goes on with the other nodes.
	FailurePolicyTypeContinue FailurePolicyType = "Continue"
	// FailurePolicyTypeFailFast fails the job and deletes the pods that still run.
	FailurePolicyTypeFailFast FailurePolicyType = "FailFast"
	// FailurePolicyTypePause creates no more pods while there is a failed one.
	FailurePolicyTypePause FailurePolicyType = "Pause"
)

// BroadcastJobPhase is where a BroadcastJob stands.
type BroadcastJobPhase string

// The phases of a BroadcastJob.
const (
	BroadcastJobPhaseRunning   BroadcastJobPhase = "running"
	BroadcastJobPhasePaused    BroadcastJobPhase = "paused"
	BroadcastJobPhaseFailed    BroadcastJobPhase = "failed"
	BroadcastJobPhaseCompleted BroadcastJobPhase = "completed"
)

// BroadcastJobSpec is the desired state of a BroadcastJob.
type BroadcastJobSpec struct {
	// Parallelism is how many pods may run at once, as a number or as a percentage of the nodes that fit, rounded up;
	// unlimited if unset.
	// +optional
	Parallelism *intstr.IntOrString `json:"parallelism,omitempty"`

	// Template of the pods. There is one on every node that fits; its restartPolicy is Never or OnFailure.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template corev1.PodTemplateSpec `json:"template"`

	// CompletionPolicy says when the job ends.
	// +optional
	CompletionPolicy CompletionPolicy `json:"completionPolicy,omitempty"`

	// Paused creates no more pods. Those that run go on.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// FailurePolicy says what happens when a pod has failed.
	// +optional
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`
}

// FailurePolicy says what a BroadcastJob does when a pod has failed.
type FailurePolicy struct {
	// Type is Continue, FailFast or Pause; FailFast if unset.
	// +kubebuilder:validation:Enum=Continue;FailFast;Pause
	// +optional
	Type FailurePolicyType `json:"type,omitempty"`

	// RestartLimit is how often the containers of one pod may restart, all taken together, before the pod counts as
	// failed; 0 if unset. It is of restartPolicy OnFailure only.
	// +kubebuilder:validation:Minimum=0
	// +optional
	RestartLimit int32 `json:"restartLimit,omitempty"`
}

// BroadcastJobStatus is the observed state of a BroadcastJob.
type BroadcastJobStatus struct {
	// Conditions say how the job ended.
	// +optional
	Conditions []JobCondition `json:"conditions,omitempty"`

	// StartTime is when the controller first saw the job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// CompletionTime is when the job ended. A job that never completes has none.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Active is how many pods run or wait to.
	// +optional
	Active int32 `json:"active"`

	// Succeeded is how many pods have succeeded.
	// +optional
	Succeeded int32 `json:"succeeded"`

	// Failed is how many pods have failed.
	// +optional
	Failed int32 `json:"failed"`

	// Desired is how many nodes should have a pod.
	// +optional
	Desired int32 `json:"desired"`

	// Phase is running, paused, failed or completed.
	// +optional
	Phase BroadcastJobPhase `json:"phase,omitempty"`
}

// BroadcastJob runs a pod to its end on every node that fits.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=bcj
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".status.desired",description="The number of nodes that should have a pod."
// +kubebuilder:printcolumn:name="Active",type="integer",JSONPath=".status.active",description="The number of pods that run."
// +kubebuilder:printcolumn:name="Succeeded",type="integer",JSONPath=".status.succeeded",description="The number of pods that have succeeded."
// +kubebuilder:printcolumn:name="Failed",type="integer",JSONPath=".status.failed",description="The number of pods that have failed."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
type BroadcastJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BroadcastJobSpec   `json:"spec,omitempty"`
	Status BroadcastJobStatus `json:"status,omitempty"`
}

// Hub marks BroadcastJob as the version that all others are converted through.
func (*BroadcastJob) Hub() {}

// BroadcastJobList is a list of BroadcastJobs.
//
// +kubebuilder:object:root=true
type BroadcastJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BroadcastJob `json:"items"`
}
