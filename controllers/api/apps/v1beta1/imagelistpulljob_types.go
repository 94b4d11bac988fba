// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ImageListPullJobSpec is the desired state of an ImageListPullJob.
//
// +kubebuilder:validation:XValidation:rule="!has(self.selector) || !has(self.podSelector)",message="can not set both selector and podSelector",fieldPath=".podSelector"
type ImageListPullJobSpec struct {
	// Images to pull, from 1 to 255 different ones. Each gets an ImagePullJob of its own.
	// +kubebuilder:validation:XValidation:rule="size(self) > 0",message="image can not be empty"
	// +kubebuilder:validation:XValidation:rule="size(self) <= 255",message="the maximum number of images cannot > 255"
	Images []string `json:"images"`

	ImagePullJobTemplate `json:",inline"`
}

// ImageListPullJobStatus is the observed state of an ImageListPullJob.
type ImageListPullJobStatus struct {
	// StartTime is when the controller first saw the job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// CompletionTime is when the job ended. A job that never completes has none.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Desired is how many images there are in the list.
	Desired int32 `json:"desired"`

	// Active is how many of them are being pulled.
	// +optional
	Active int32 `json:"active,omitempty"`

	// Completed is how many of them every node has pulled or given up.
	// +optional
	Completed int32 `json:"completed,omitempty"`

	// Succeeded is how many of them every node has pulled.
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`

	// FailedImageStatuses are of the images that some node has given up.
	// +optional
	FailedImageStatuses []FailedImageStatus `json:"failedImageStatuses,omitempty"`

	// Conditions say what the controller met.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FailedImageStatus is of an image that some node has given up.
type FailedImageStatus struct {
	// ImagePullJob is the name of the job that pulls the image.
	// +optional
	ImagePullJob string `json:"imagePullJob,omitempty"`
	// Name of the image.
	// +optional
	Name string `json:"name,omitempty"`
	// Message says what went wrong.
	// +optional
	Message string `json:"message,omitempty"`
}

// ImageListPullJob pulls several images to nodes before pods need them there.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.desired",description="The number of images."
// +kubebuilder:printcolumn:name="SUCCEEDED",type="integer",JSONPath=".status.succeeded",description="The number of images that every node has pulled."
// +kubebuilder:printcolumn:name="COMPLETED",type="integer",JSONPath=".status.completed",description="The number of images that every node has pulled or given up."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
type ImageListPullJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="(has(self.pullSecrets) ? self.pullSecrets : []) == (has(oldSelf.pullSecrets) ? oldSelf.pullSecrets : [])",message="spec.pullSecrets is immutable",fieldPath=".pullSecrets"
	Spec   ImageListPullJobSpec   `json:"spec,omitempty"`
	Status ImageListPullJobStatus `json:"status,omitempty"`
}

// Hub marks ImageListPullJob as the version that all others are converted through.
func (*ImageListPullJob) Hub() {}

// ImageListPullJobList is a list of ImageListPullJobs.
//
// +kubebuilder:object:root=true
type ImageListPullJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ImageListPullJob `json:"items"`
}
