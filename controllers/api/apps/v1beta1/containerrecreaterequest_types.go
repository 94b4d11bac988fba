// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ContainerRecreateRequestSpec is which containers to restart, and how. It cannot be changed.
type ContainerRecreateRequestSpec struct {
	// PodName is the name of the pod, which is in the namespace of the request.
	// +kubebuilder:validation:MinLength=1
	PodName string `json:"podName"`

	// Containers to restart, in this order. Each one may be named once.
	// +kubebuilder:validation:MinItems=1
	Containers []ContainerRecreateRequestContainer `json:"containers"`

	// Strategy says how to restart them.
	// +optional
	Strategy *ContainerRecreateRequestStrategy `json:"strategy,omitempty"`

	// ActiveDeadlineSeconds is how long the request may take, counted from its creation; then it is Completed, whatever
	// has been done. No limit if unset, and not less than 3 if set.
	// +kubebuilder:validation:Minimum=3
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// TTLSecondsAfterFinished is how long the request is kept after it has been completed; for ever if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ContainerRecreateRequestContainer is one container to restart. Users give the name only; the admission webhook fills
// in the rest from the pod, and refuses it from users.
type ContainerRecreateRequestContainer struct {
	// Name of the container. Init containers cannot be restarted.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// PreStop is what runs before the container is stopped. Filled in.
	// +optional
	PreStop *PreStopHandler `json:"preStop,omitempty"`

	// Ports of the container, for names of ports in preStop. Filled in if preStop is an HTTP request.
	// +optional
	Ports []corev1.ContainerPort `json:"ports,omitempty"`

	// StatusContext is the run of the container that shall end. Filled in.
	// +optional
	StatusContext *ContainerRecreateRequestContainerContext `json:"statusContext,omitempty"`
}

// PreStopHandler is what runs before a container is stopped: one of its fields.
type PreStopHandler struct {
	// Exec runs a command in the container.
	// +optional
	Exec *corev1.ExecAction `json:"exec,omitempty"`

	// HTTPGet asks the container by HTTP.
	// +optional
	HTTPGet *corev1.HTTPGetAction `json:"httpGet,omitempty"`

	// TCPSocket is here because a pod can have it; Kubernetes does not support it before a stop.
	// +optional
	TCPSocket *corev1.TCPSocketAction `json:"tcpSocket,omitempty"`

	// Sleep waits for so many seconds.
	// +optional
	Sleep *corev1.SleepAction `json:"sleep,omitempty"`
}

// ContainerRecreateRequestContainerContext is one run of a container.
type ContainerRecreateRequestContainerContext struct {
	// ContainerID is the identity that the container runtime gave the run.
	ContainerID string `json:"containerID"`

	// RestartCount is how many runs went before.
	RestartCount int32 `json:"restartCount"`
}

// ContainerRecreateRequestFailurePolicyType is what becomes of the other containers if one cannot be stopped.
type ContainerRecreateRequestFailurePolicyType string

const (
	// ContainerRecreateRequestFailurePolicyFail leaves the others alone.
	ContainerRecreateRequestFailurePolicyFail ContainerRecreateRequestFailurePolicyType = "Fail"
	// ContainerRecreateRequestFailurePolicyIgnore goes on with the others.
	ContainerRecreateRequestFailurePolicyIgnore ContainerRecreateRequestFailurePolicyType = "Ignore"
)

// ContainerRecreateRequestStrategy says how containers are restarted.
type ContainerRecreateRequestStrategy struct {
	// FailurePolicy is Fail or Ignore: whether other containers are left alone after one that could not be stopped;
	// Fail if unset.
	// +kubebuilder:validation:Enum=Fail;Ignore
	// +optional
	FailurePolicy ContainerRecreateRequestFailurePolicyType `json:"failurePolicy,omitempty"`

	// OrderedRecreate stops a container only after the one before it runs again and is ready.
	// +optional
	OrderedRecreate bool `json:"orderedRecreate,omitempty"`

	// ForceRecreate stops a container even if it has restarted by itself since the request.
	// +optional
	ForceRecreate bool `json:"forceRecreate,omitempty"`

	// TerminationGracePeriodSeconds is how long preStop and the stop may take before the container is killed; the pod's
	// own value if unset. The stop itself gets 2 seconds at least.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// UnreadyGracePeriodSeconds is how long the pod is held not ready before preStop, so that traffic can go elsewhere.
	// It is waited for in any case, but only a pod with the readiness gate KruisePodReady becomes not ready. There is no
	// wait if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	UnreadyGracePeriodSeconds *int64 `json:"unreadyGracePeriodSeconds,omitempty"`

	// MinStartedSeconds is how long a container must run again before it has succeeded; 0 if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinStartedSeconds int32 `json:"minStartedSeconds,omitempty"`
}

// ContainerRecreateRequest restarts containers of one pod, without the pod being recreated.
//
// The status is omitted until a client writes it. A phase is required and must not be empty, so the API server would
// reject an object with an empty status in this version.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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

// Hub marks ContainerRecreateRequest as the version that all others are converted through.
func (*ContainerRecreateRequest) Hub() {}

// ContainerRecreateRequestList is a list of ContainerRecreateRequests.
//
// +kubebuilder:object:root=true
type ContainerRecreateRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ContainerRecreateRequest `json:"items"`
}
