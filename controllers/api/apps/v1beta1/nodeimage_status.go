// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeImageStatus is which of the images a node has. Desired is the sum of the other four numbers, except for tags that
// the node has not answered for yet.
type NodeImageStatus struct {
	// Desired is how many tags are wanted, of all images together.
	Desired int32 `json:"desired"`

	// Succeeded is how many of them were pulled, or were there already.
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`

	// Failed is how many could not be pulled and are not tried any more.
	// +optional
	Failed int32 `json:"failed,omitempty"`

	// Pulling is how many are being pulled.
	// +optional
	Pulling int32 `json:"pulling,omitempty"`

	// Waiting is how many wait until the node has pulled others.
	// +optional
	Waiting int32 `json:"waiting,omitempty"`

	// ImageStatuses by name of the image.
	// +optional
	ImageStatuses map[string]ImageStatus `json:"imageStatuses,omitempty"`

	// FirstSyncStatus is Succeeded once the node can pull images, and Failed with the reason while no container runtime
	// of it answers or serves images.
	// +optional
	FirstSyncStatus *SyncStatus `json:"firstSyncStatus,omitempty"`

	// Conditions say what the controller met.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ImageStatus is what became of one image.
type ImageStatus struct {
	// Tags that the node has begun with, sorted by their names.
	Tags []ImageTagStatus `json:"tags"`
}

// ImagePullPhase is how far a pull has come.
type ImagePullPhase string

const (
	// ImagePhaseWaiting is of a pull that waits for others on the node.
	ImagePhaseWaiting ImagePullPhase = "Waiting"
	// ImagePhasePulling is of a pull that goes on, between two attempts too.
	ImagePhasePulling ImagePullPhase = "Pulling"
	// ImagePhaseSucceeded is of a tag that the node has.
	ImagePhaseSucceeded ImagePullPhase = "Succeeded"
	// ImagePhaseFailed is of a pull that was given up.
	ImagePhaseFailed ImagePullPhase = "Failed"
)

// ImageTagStatus is what became of one tag.
type ImageTagStatus struct {
	// Tag of the image, or its digest.
	Tag string `json:"tag"`

	// Phase is Waiting, Pulling, Succeeded or Failed.
	Phase ImagePullPhase `json:"phase"`

	// Progress of the pull in percent, as far as the container runtime tells; 100 at the end.
	// +optional
	Progress int32 `json:"progress,omitempty"`

	// StartTime is when the first attempt began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// CompletionTime is when the pull succeeded or was given up.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Version of the tag's spec that this is the status of.
	// +optional
	Version int64 `json:"version,omitempty"`

	// ImageID is the name of the image and the identity that the container runtime gives it, with an @ between them.
	// +optional
	ImageID string `json:"imageID,omitempty"`

	// Message is the error of the last attempt that failed.
	// +optional
	Message string `json:"message,omitempty"`
}

// SyncStatusPhase is how the very first pulls on a node went.
type SyncStatusPhase string

const (
	// SyncStatusSucceeded is of a node that got all images.
	SyncStatusSucceeded SyncStatusPhase = "Succeeded"
	// SyncStatusFailed is of a node that misses some.
	SyncStatusFailed SyncStatusPhase = "Failed"
)

// SyncStatus is how the very first pulls on a node went.
type SyncStatus struct {
	// SyncAt is when they had all ended.
	// +optional
	SyncAt *metav1.Time `json:"syncAt,omitempty"`

	// Status is Succeeded or Failed.
	// +optional
	Status SyncStatusPhase `json:"status,omitempty"`

	// Message says what failed.
	// +optional
	Message string `json:"message,omitempty"`
}
