// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// EphemeralJobPhase is where an EphemeralJob stands.
type EphemeralJobPhase string

const (
	// EphemeralJobSucceeded is when the containers of all pods have succeeded.
	EphemeralJobSucceeded EphemeralJobPhase = "Succeeded"
	// EphemeralJobFailed is when those of all pods have failed, or the deadline has passed.
	EphemeralJobFailed EphemeralJobPhase = "Failed"
	// EphemeralJobWaiting is when no pod matches, or all wait for their containers.
	EphemeralJobWaiting EphemeralJobPhase = "Waiting"
	// EphemeralJobRunning is when the containers of some pod run.
	EphemeralJobRunning EphemeralJobPhase = "Running"
	// EphemeralJobPaused is when the job is paused.
	EphemeralJobPaused EphemeralJobPhase = "Paused"
	// EphemeralJobError is when the template has no containers.
	EphemeralJobError EphemeralJobPhase = "Error"
	// EphemeralJobUnknown is any other state.
	EphemeralJobUnknown EphemeralJobPhase = "Unknown"
)

// Defaults of an EphemeralJob, which the controller applies.
const (
	DefaultEphemeralJobParallelism             = 1
	DefaultEphemeralJobTTLSecondsAfterFinished = 1800
)

// EphemeralJobSpec is the desired state of an EphemeralJob.
type EphemeralJobSpec struct {
	// Selector says which pods of the namespace get the containers. An empty one matches all.
	Selector *metav1.LabelSelector `json:"selector"`

	// Replicas is how many of these pods get them at most, oldest first; all if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Parallelism is in how many pods the containers run at once; 1 if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Parallelism *int32 `json:"parallelism,omitempty"`

	// Template of what the pods get.
	Template EphemeralContainerTemplateSpec `json:"template"`

	// Paused starts containers in no more pods. Those that run go on.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// ActiveDeadlineSeconds is how long after its start the job may run before it fails; unlimited if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// TTLSecondsAfterFinished is how long after its end the job is deleted; 1800 if unset. Its containers stay as long
	// as their pods.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// EphemeralContainerTemplateSpec says what containers pods get.
type EphemeralContainerTemplateSpec struct {
	// EphemeralContainers that are added to a running pod, with names that no container of the pod has.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	EphemeralContainers []corev1.EphemeralContainer `json:"ephemeralContainers"`
}

// EphemeralJobStatus is the observed state of an EphemeralJob.
type EphemeralJobStatus struct {
	// Conditions say what the controller met.
	// +optional
	Conditions []v1beta1.JobCondition `json:"conditions,omitempty"`

	// StartTime is when the controller first saw the job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// CompletionTime is when the job ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Phase sums up how the containers of all pods do.
	// +optional
	Phase EphemeralJobPhase `json:"phase,omitempty"`

	// Match is how many pods the job is for.
	// +optional
	Match int32 `json:"match"`

	// Running is in how many of them a container runs.
	// +optional
	Running int32 `json:"running"`

	// Succeeded is in how many of them all containers have succeeded.
	// +optional
	Succeeded int32 `json:"succeeded"`

	// Waiting is in how many of them a container waits and none runs.
	// +optional
	Waiting int32 `json:"waiting"`

	// Failed is in how many of them a container has failed, or could not be added.
	// +optional
	Failed int32 `json:"failed"`
}

// EphemeralJob runs ephemeral containers in pods that run already, as to look into them.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=ejob
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="STATUS",type="string",JSONPath=".status.phase",description="How the containers of all pods do."
// +kubebuilder:printcolumn:name="MATCH",type="integer",JSONPath=".status.match",description="The number of pods that the job is for."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="The number of pods whose containers have succeeded."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="The number of pods with a container that has failed."
// +kubebuilder:printcolumn:name="RUNNING",type="integer",JSONPath=".status.running",description="The number of pods with a container that runs."
// +kubebuilder:printcolumn:name="WAITING",type="integer",JSONPath=".status.waiting",description="The number of pods whose containers wait."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
type EphemeralJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   EphemeralJobSpec   `json:"spec,omitempty"`
	Status EphemeralJobStatus `json:"status,omitempty"`
}

// EphemeralJobList is a list of EphemeralJobs.
//
// +kubebuilder:object:root=true
type EphemeralJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EphemeralJob `json:"items"`
}
