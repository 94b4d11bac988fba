// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ImagePullJobSpec is the desired state of an ImagePullJob.
//
// +kubebuilder:validation:XValidation:rule="!has(self.selector) || !has(self.podSelector)",message="can not set both selector and podSelector",fieldPath=".podSelector"
// +kubebuilder:validation:XValidation:rule="!has(self.completionPolicy.activeDeadlineSeconds) || (has(self.completionPolicy.type) && self.completionPolicy.type == 'Never') || (has(self.pullPolicy) && has(self.pullPolicy.timeoutSeconds) ? self.pullPolicy.timeoutSeconds : 600) <= self.completionPolicy.activeDeadlineSeconds",message="completionPolicy.activeDeadlineSeconds must be greater than pullPolicy.timeoutSeconds(default 600)",fieldPath=".completionPolicy.activeDeadlineSeconds"
type ImagePullJobSpec struct {
	// Image to pull, with a tag or a digest; the tag latest if it has neither.
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`

	ImagePullJobTemplate `json:",inline"`
}

// ImagePullJobStatus is the observed state of an ImagePullJob.
type ImagePullJobStatus struct {
	// StartTime is when the controller first saw the job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// CompletionTime is when the job ended. A job that never completes has none.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Desired is how many nodes should have the image.
	Desired int32 `json:"desired"`

	// Active is how many nodes pull it now.
	// +optional
	Active int32 `json:"active,omitempty"`

	// Succeeded is how many nodes have pulled it.
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`

	// Failed is how many nodes have given up.
	// +optional
	Failed int32 `json:"failed,omitempty"`

	// Message says in a sentence how far the job is.
	// +optional
	Message string `json:"message,omitempty"`

	// FailedNodes are the names of the nodes that have given up.
	// +optional
	FailedNodes []string `json:"failedNodes,omitempty"`

	// Conditions say what the controller met.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ImagePullJob pulls an image to nodes before a pod needs it there.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.desired",description="The number of nodes that should have the image."
// +kubebuilder:printcolumn:name="ACTIVE",type="integer",JSONPath=".status.active",description="The number of nodes that pull it now."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="The number of nodes that have pulled it."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="The number of nodes that have given up."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
type ImagePullJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="(has(self.pullSecrets) ? self.pullSecrets : []) == (has(oldSelf.pullSecrets) ? oldSelf.pullSecrets : [])",message="spec.pullSecrets is immutable",fieldPath=".pullSecrets"
	Spec   ImagePullJobSpec   `json:"spec,omitempty"`
	Status ImagePullJobStatus `json:"status,omitempty"`
}

// Hub marks ImagePullJob as the version that all others are converted through.
func (*ImagePullJob) Hub() {}

// ImagePullJobList is a list of ImagePullJobs.
//
// +kubebuilder:object:root=true
type ImagePullJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ImagePullJob `json:"items"`
}
