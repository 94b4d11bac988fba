// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
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

	// ConcurrencyPolicy is Allow, Forbid or Replace; Allow if unset.
	// +optional
	ConcurrencyPolicy v1beta1.ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

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

// CronJobTemplate says what job is created: exactly one of the fields is set. None is set if the object pulls images,
// which can be said in v1beta1 only.
type CronJobTemplate struct {
	// JobTemplate creates a Job.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	JobTemplate *batchv1.JobTemplateSpec `json:"jobTemplate,omitempty"`

	// BroadcastJobTemplate creates a BroadcastJob.
	// +optional
	BroadcastJobTemplate *v1beta1.BroadcastJobTemplateSpec `json:"broadcastJobTemplate,omitempty"`
}

// AdvancedCronJob creates Jobs, BroadcastJobs or ImageListPullJobs at given times.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=acj
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Schedule",type="string",JSONPath=".spec.schedule",description="The schedule in cron format."
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".status.type",description="The kind of the jobs."
// +kubebuilder:printcolumn:name="LastScheduleTime",type="date",JSONPath=".status.lastScheduleTime",description="The time since the newest job was due."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
type AdvancedCronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AdvancedCronJobSpec           `json:"spec,omitempty"`
	Status v1beta1.AdvancedCronJobStatus `json:"status,omitempty"`
}

// AdvancedCronJobList is a list of AdvancedCronJobs.
//
// +kubebuilder:object:root=true
type AdvancedCronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AdvancedCronJob `json:"items"`
}
