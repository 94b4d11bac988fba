// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ContainerRecreateRequestPhase is how far a request, or one container of it, has come.
type ContainerRecreateRequestPhase string

const (
	// ContainerRecreateRequestPending waits: a request for others of the same pod, a container for its stop.
	ContainerRecreateRequestPending ContainerRecreateRequestPhase = "Pending"
	// ContainerRecreateRequestRecreating is at work: a container has been stopped and is not ready again.
	ContainerRecreateRequestRecreating ContainerRecreateRequestPhase = "Recreating"
	// ContainerRecreateRequestSucceeded is of a container that runs again and is ready.
	ContainerRecreateRequestSucceeded ContainerRecreateRequestPhase = "Succeeded"
	// ContainerRecreateRequestFailed is of a container that could not be stopped.
	ContainerRecreateRequestFailed ContainerRecreateRequestPhase = "Failed"
	// ContainerRecreateRequestCompleted is of a request that nothing more is done for, well or badly.
	ContainerRecreateRequestCompleted ContainerRecreateRequestPhase = "Completed"
)

// ContainerRecreateRequestStatus is how far the request has come.
type ContainerRecreateRequestStatus struct {
	// Phase is Pending, Recreating or Completed. Completed says nothing of success: see containerRecreateStates.
	// +kubebuilder:validation:Enum=Pending;Recreating;Succeeded;Failed;Completed
	Phase ContainerRecreateRequestPhase `json:"phase"`

	// CompletionTime is when the request was completed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Message says why the request was completed, if not by its containers.
	// +optional
	Message string `json:"message,omitempty"`

	// ContainerRecreateStates are how far the containers have come, in the order of the spec.
	// +optional
	ContainerRecreateStates []ContainerRecreateRequestContainerRecreateState `json:"containerRecreateStates,omitempty"`

	// ContainerStatusSnapshot is what the pod says of containers that have started since the request. The node judges
	// from it whether they have succeeded.
	// +optional
	ContainerStatusSnapshot []ContainerStatusSnapshot `json:"containerStatusSnapshot,omitempty"`

	// Conditions say what the controller has done: PreRecreateGrace is True from when the pod is held not ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ContainerRecreateRequestContainerRecreateState is how far one container has come.
type ContainerRecreateRequestContainerRecreateState struct {
	// Name of the container.
	Name string `json:"name"`

	// Phase is Pending, Recreating, Succeeded or Failed.
	// +kubebuilder:validation:Enum=Pending;Recreating;Succeeded;Failed;Completed
	Phase ContainerRecreateRequestPhase `json:"phase"`

	// Message says why the container is not on, or could not be stopped.
	// +optional
	Message string `json:"message,omitempty"`

	// IsKilled is set once the container has been stopped for this request.
	// +optional
	IsKilled bool `json:"isKilled,omitempty"`
}

// ContainerStatusSnapshot is what the pod says of one container.
type ContainerStatusSnapshot struct {
	// Name of the container.
	Name string `json:"name"`

	// Ready is whether the container is ready.
	Ready bool `json:"ready"`

	// RestartCount is how many runs went before this one.
	RestartCount int32 `json:"restartCount"`

	// ContainerID is the identity that the container runtime gave this run.
	// +optional
	ContainerID string `json:"containerID,omitempty"`
}
