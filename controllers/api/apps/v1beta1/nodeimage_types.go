// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeImageSpec is the images that a node shall have.
type NodeImageSpec struct {
	// Images by name, at most 256. A name is as people write it, without a tag: nginx, not docker.io/library/nginx.
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule=`self.all(name, name != "")`,message="must not have an image without a name"
	// +optional
	Images map[string]ImageSpec `json:"images,omitempty"`
}

// ImageSpec is what is wanted of one image.
type ImageSpec struct {
	// PullSecrets are tried one after the other, and at last none at all.
	// +optional
	PullSecrets []ReferenceObject `json:"pullSecrets,omitempty"`

	// Tags to pull, sorted by their names. An image without any is removed from the list.
	Tags []ImageTagSpec `json:"tags"`

	// SandboxConfig is handed to the container runtime with every pull.
	// +optional
	SandboxConfig *SandboxConfig `json:"sandboxConfig,omitempty"`
}

// PullSecretMode is who cares for a secret.
type PullSecretMode string

// PullSecretModeBatch is of a copy that several ImagePullJobs share. It stays in the list even while it cannot be found.
const PullSecretModeBatch PullSecretMode = "batch"

// ReferenceObject names a secret.
type ReferenceObject struct {
	// Namespace of the secret.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the secret.
	// +optional
	Name string `json:"name,omitempty"`

	// Mode is batch for a copy that several jobs share. A secret of no mode leaves the list once it is not found.
	// +optional
	Mode PullSecretMode `json:"mode,omitempty"`
}

// ImageTagSpec is what is wanted of one tag.
//
// +kubebuilder:validation:XValidation:rule="has(self.pullPolicy)",message="is required, with ttlSecondsAfterFinished",fieldPath=".pullPolicy",reason="FieldValueRequired"
type ImageTagSpec struct {
	// Tag of the image, or its digest.
	// +kubebuilder:validation:MinLength=1
	Tag string `json:"tag"`

	// CreatedAt is when this version of the tag was asked for; now if unset when it is written.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`

	// PullPolicy says how long and how often to try.
	// +optional
	PullPolicy *ImageTagPullPolicy `json:"pullPolicy,omitempty"`

	// OwnerReferences are the ImagePullJobs that want the tag. It is removed when the last of them is gone; a tag that
	// never had any stays.
	// +optional
	OwnerReferences []corev1.ObjectReference `json:"ownerReferences,omitempty"`

	// Version grows by one whenever the tag shall be pulled again. A status counts if it has the same version.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Version int64 `json:"version,omitempty"`

	// ImagePullPolicy is Always or IfNotPresent; Always if unset.
	// +optional
	ImagePullPolicy ImagePullPolicy `json:"imagePullPolicy,omitempty"`
}

// ImageTagPullPolicy says how long and how often to try.
//
// +kubebuilder:validation:XValidation:rule="has(self.ttlSecondsAfterFinished)",message="is required",fieldPath=".ttlSecondsAfterFinished",reason="FieldValueRequired"
type ImageTagPullPolicy struct {
	// TimeoutSeconds is how long one attempt may take; 600 if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// BackoffLimit is how many attempts follow the first one that fails; 3 if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`

	// TTLSecondsAfterFinished is how long the tag stays in the list after its pull has ended. It is required.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// ActiveDeadlineSeconds is how long all attempts together may take, counted from the first; no limit if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
}

// NodeImage is the images that a node shall have, and which of them it has. It is named after its node, comes and goes
// with it and carries its labels.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".status.desired",description="The number of tags wanted."
// +kubebuilder:printcolumn:name="PULLING",type="integer",JSONPath=".status.pulling",description="The number of tags being pulled."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="The number of tags pulled."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="The number of tags that could not be pulled."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
type NodeImage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodeImageSpec   `json:"spec,omitempty"`
	Status NodeImageStatus `json:"status,omitempty"`
}

// Hub marks NodeImage as the version that all others are converted through.
func (*NodeImage) Hub() {}

// NodeImageList is a list of NodeImages.
//
// +kubebuilder:object:root=true
type NodeImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeImage `json:"items"`
}
