// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConcurrencyPolicy is what happens to a run that is due while an earlier one is still active.
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

const (
	// AllowConcurrent starts the run beside the earlier one.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent leaves the run out.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent deletes the earlier run and starts the new one.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// TemplateKind is the kind of the jobs that an AdvancedCronJob creates.
type TemplateKind string

// The kinds of jobs, in the order in which templates are looked for (ACJ-01).
const (
	JobTemplateKind              TemplateKind = "Job"
	ImageListPullJobTemplateKind TemplateKind = "ImageListPullJob"
	BroadcastJobTemplateKind     TemplateKind = "BroadcastJob"
)

// Defaults of the history limits.
const (
	DefaultSuccessfulJobsHistoryLimit = 3
	DefaultFailedJobsHistoryLimit     = 1
)

// AdvancedCronJobSpec is the desired state of an AdvancedCronJob.
//
// +kubebuilder:validation:XValidation:rule="!has(self.timeZone) || !self.schedule.contains('TZ')",message="cannot use both timeZone field and TZ or CRON_TZ in schedule",fieldPath=".timeZone"
type AdvancedCronJobSpec struct {
	// Schedule has the five fields of cron, or is a word such as @daily. TZ=<zone> or CRON_TZ=<zone> may stand before it.
	// +kubebuilder:validation:MinLength=0
	Schedule string `json:"schedule"`

	// TimeZone that the schedule is read in, such as Europe/Berlin; that of the manager if unset. It cannot go with a
	// zone in the schedule.
	// +kubebuilder:validation:XValidation:rule="size(self) > 0 && self != 'Local'",message="must be the name of a zone, such as Europe/Berlin"
	// +optional
	TimeZone *string `json:"timeZone,omitempty"`

	// StartingDeadlineSeconds is how late a run may start; one that missed its time by more is left out. Unlimited if
	// unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// ConcurrencyPolicy is Allow, Forbid or Replace; Allow if unset, but Replace with imageListPullJobTemplate.
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// Paused starts no more runs. Those that are active go on.
	// +optional
	Paused *bool `json:"paused,omitempty"`

	// SuccessfulJobsHistoryLimit is how many jobs that have succeeded are kept; 3 if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`

	// FailedJobsHistoryLimit is how many jobs that have failed are kept; 1 if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`

	// Template of the jobs.
	Template CronJobTemplate `json:"template"`
}

// CronJobTemplate says what job is created: exactly one of the fields is set.
type CronJobTemplate struct {
	// JobTemplate creates a Job.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	JobTemplate *batchv1.JobTemplateSpec `json:"jobTemplate,omitempty"`

	// BroadcastJobTemplate creates a BroadcastJob.
	// +optional
	BroadcastJobTemplate *BroadcastJobTemplateSpec `json:"broadcastJobTemplate,omitempty"`

	// ImageListPullJobTemplate creates an ImageListPullJob. It must end, and cannot go with ttlSecondsAfterFinished or
	// concurrencyPolicy Allow.
	// +optional
	ImageListPullJobTemplate *ImageListPullJobTemplateSpec `json:"imageListPullJobTemplate,omitempty"`
}

// BroadcastJobTemplateSpec is the template of a BroadcastJob.
type BroadcastJobTemplateSpec struct {
	// Metadata of the job: labels and annotations.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec of the job.
	// +optional
	Spec BroadcastJobSpec `json:"spec,omitempty"`
}

// ImageListPullJobTemplateSpec is the template of an ImageListPullJob.
type ImageListPullJobTemplateSpec struct {
	// Metadata of the job: labels and annotations.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec of the job.
	// +optional
	Spec ImageListPullJobSpec `json:"spec,omitempty"`
}

// AdvancedCronJobStatus is the observed state of an AdvancedCronJob.
type AdvancedCronJobStatus struct {
	// Type is Job, BroadcastJob or ImageListPullJob: the kind of the jobs.
	// +optional
	Type TemplateKind `json:"type,omitempty"`

	// Active are the jobs that have not ended.
	// +optional
	Active []corev1.ObjectReference `json:"active,omitempty"`

	// LastScheduleTime is when the newest job that still exists was due.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// Conditions say what the controller met.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AdvancedCronJob creates Jobs, BroadcastJobs or ImageListPullJobs at given times.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=acj
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Schedule",type="string",JSONPath=".spec.schedule",description="The schedule in cron format."
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".status.type",description="The kind of the jobs."
// +kubebuilder:printcolumn:name="LastScheduleTime",type="date",JSONPath=".status.lastScheduleTime",description="The time since the newest job was due."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
type AdvancedCronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AdvancedCronJobSpec   `json:"spec,omitempty"`
	Status AdvancedCronJobStatus `json:"status,omitempty"`
}

// Hub marks AdvancedCronJob as the version that all others are converted through.
func (*AdvancedCronJob) Hub() {}

// AdvancedCronJobList is a list of AdvancedCronJobs.
//
// +kubebuilder:object:root=true
type AdvancedCronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AdvancedCronJob `json:"items"`
}
