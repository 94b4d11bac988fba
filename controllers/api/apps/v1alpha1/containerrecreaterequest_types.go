// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// This version refuses no phase, so it cannot share the structs of the status of v1beta1, which does.

// ContainerRecreateRequestStatus is how far the request has come.
type ContainerRecreateRequestStatus struct {
	// Phase is Pending, Recreating or Completed. Completed says nothing of success: see containerRecreateStates.
	Phase v1beta1.ContainerRecreateRequestPhase `json:"phase"`

	// CompletionTime is when the request was completed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Message says why the request was completed, if not by its containers.
	// +optional
	Message string `json:"message,omitempty"`

	// ContainerRecreateStates are how far the containers have come, in the order of the spec.
	// +optional
	ContainerRecreateStates []ContainerRecreateRequestContainerRecreateState `json:"containerRecreateStates,omitempty"`
}

// ContainerRecreateRequestContainerRecreateState is how far one container has come.
type ContainerRecreateRequestContainerRecreateState struct {
	// Name of the container.
	Name string `json:"name"`

	// Phase is Pending, Recreating, Succeeded or Failed.
	Phase v1beta1.ContainerRecreateRequestPhase `json:"phase"`

	// Message says why the container is not on, or could not be stopped.
	// +optional
	Message string `json:"message,omitempty"`

	// IsKilled is set once the container has been stopped for this request.
	// +optional
	IsKilled bool `json:"isKilled,omitempty"`
}

// ContainerRecreateRequest restarts containers of one pod, without the pod being recreated.
//
// The annotation crr.apps.kruise.io/sync-container-statuses is what status.containerStatusSnapshot is in v1beta1, and
// crr.apps.kruise.io/unready-acquired is the time of the condition PreRecreateGrace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=crr
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="PHASE",type="string",JSONPath=".status.phase",description="How far the request has come."
// +kubebuilder:printcolumn:name="POD",type="string",JSONPath=".spec.podName",description="The pod of the containers."
// +kubebuilder:printcolumn:name="NODE",type="string",JSONPath=".metadata.labels.crr\\.apps\\.kruise\\.io/node-name",description="The node of the pod."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
type ContainerRecreateRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   v1beta1.ContainerRecreateRequestSpec `json:"spec,omitempty"`
	Status ContainerRecreateRequestStatus       `json:"status,omitempty,omitzero"`
}

// ContainerRecreateRequestList is a list of ContainerRecreateRequests.
//
// +kubebuilder:object:root=true
type ContainerRecreateRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ContainerRecreateRequest `json:"items"`
}
