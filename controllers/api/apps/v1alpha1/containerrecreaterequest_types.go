package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// This version refuses no phase, no policy and no number, so it cannot share the structs of v1beta1, which does.

// ContainerRecreateRequestSpec is which containers to restart, and how. It cannot be changed.
type ContainerRecreateRequestSpec struct {
	// PodName is the name of the pod, which is in the namespace of the request.
	PodName string `json:"podName"`

	// Containers to restart, in this order. Each one may be named once.
	Containers []v1beta1.ContainerRecreateRequestContainer `json:"containers"`

	// Strategy says how to restart them.
	// +optional
	Strategy *ContainerRecreateRequestStrategy `json:"strategy,omitempty"`

	// ActiveDeadlineSeconds is how long the request may take, counted from its creation; then it is Completed, whatever
	// has been done. No limit if unset, and not less than 3 if set.
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// TTLSecondsAfterFinished is how long the request is kept after it has been completed; for ever if unset.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ContainerRecreateRequestStrategy says how containers are restarted.
type ContainerRecreateRequestStrategy struct {
	// FailurePolicy is Fail or Ignore: whether other containers are left alone after one that could not be stopped;
	// Fail if unset.
	// +optional
	FailurePolicy v1beta1.ContainerRecreateRequestFailurePolicyType `json:"failurePolicy,omitempty"`

	// OrderedRecreate stops a container only after the one before it runs again and is ready.
	// +optional
	OrderedRecreate bool `json:"orderedRecreate,omitempty"`

	// ForceRecreate stops a container even if it has restarted by itself since the request.
	// +optional
	ForceRecreate bool `json:"forceRecreate,omitempty"`

	// TerminationGracePeriodSeconds is how long preStop and the stop may take before the container is killed; the pod's
	// own value if unset. The stop itself gets 2 seconds at least.
	// +optional
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// UnreadyGracePeriodSeconds is how long the pod is held not ready before preStop, so that traffic can go elsewhere.
	// It is waited for in any case, but only a pod with the readiness gate KruisePodReady becomes not ready. There is no
	// wait if unset.
	// +optional
	UnreadyGracePeriodSeconds *int64 `json:"unreadyGracePeriodSeconds,omitempty"`

	// MinStartedSeconds is how long a container must run again before it has succeeded; 0 if unset.
	// +optional
	MinStartedSeconds int32 `json:"minStartedSeconds,omitempty"`
}

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

	Spec   ContainerRecreateRequestSpec   `json:"spec,omitempty"`
	Status ContainerRecreateRequestStatus `json:"status,omitempty,omitzero"`
}

// ContainerRecreateRequestList is a list of ContainerRecreateRequests.
//
// +kubebuilder:object:root=true
type ContainerRecreateRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ContainerRecreateRequest `json:"items"`
}
