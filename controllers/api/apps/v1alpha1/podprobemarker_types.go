// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodProbeMarkerSpec is which pods to probe, how, and where the results go.
type PodProbeMarkerSpec struct {
	// Selector says which pods of the namespace are probed. It may not be empty and cannot be changed.
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="empty Selector is not valid for PodProbeMarker."
	Selector *metav1.LabelSelector `json:"selector"`

	// Probes to run in every pod; at least one.
	// +kubebuilder:validation:MinItems=1
	Probes []PodContainerProbe `json:"probes"`
}

// PodContainerProbe is one probe of one container. It has podConditionType, markerPolicy or both.
//
// +kubebuilder:validation:XValidation:rule="(has(self.podConditionType) && size(self.podConditionType) > 0) || (has(self.markerPolicy) && size(self.markerPolicy) > 0)",message="podConditionType and markerPolicy cannot be empty at the same time"
type PodContainerProbe struct {
	// Name of the probe. No other probe of the marker has it, and it has no # in it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[^#]*$`
	Name string `json:"name"`

	// ContainerName is the container that is probed. A pod without it has no such probe.
	// +kubebuilder:validation:MinLength=1
	ContainerName string `json:"containerName"`

	// Probe is a command, an HTTP request or a TCP connection, and how often. Thresholds and times that are 0 count as
	// 1; grpc and terminationGracePeriodSeconds are not supported.
	Probe ContainerProbeSpec `json:"probe"`

	// MarkerPolicy are labels and annotations that the pod gets and loses by the result. Each state may be there once.
	// +optional
	MarkerPolicy []ProbeMarkerPolicy `json:"markerPolicy,omitempty"`

	// PodConditionType is the condition of the pod that holds the result: True if it succeeded, else False. Types that
	// Kubernetes or Regatta keep themselves are refused, such as Ready.
	// +optional
	PodConditionType string `json:"podConditionType,omitempty"`
}

// ContainerProbeSpec is how a container is probed.
//
// +kubebuilder:validation:XValidation:rule="has(self.exec) ? !has(self.httpGet) && !has(self.tcpSocket) : has(self.httpGet) != has(self.tcpSocket)",message="must have exactly one of exec, httpGet and tcpSocket"
// +kubebuilder:validation:XValidation:rule="!has(self.exec) || (has(self.exec.command) && size(self.exec.command) > 0)",message="is required",fieldPath=".exec.command",reason="FieldValueRequired"
// +kubebuilder:validation:XValidation:rule="!has(self.httpGet) || (has(self.httpGet.path) && size(self.httpGet.path) > 0)",message="is required",fieldPath=".httpGet.path",reason="FieldValueRequired"
// +kubebuilder:validation:XValidation:rule=`!has(self.httpGet) || !has(self.httpGet.host) || self.httpGet.host == ""`,message="must be left out: a probe asks the pod itself",fieldPath=".httpGet.host"
// +kubebuilder:validation:XValidation:rule=`!has(self.tcpSocket) || !has(self.tcpSocket.host) || self.tcpSocket.host == ""`,message="must be left out: a probe asks the pod itself",fieldPath=".tcpSocket.host"
// +kubebuilder:validation:XValidation:rule="!has(self.initialDelaySeconds) || self.initialDelaySeconds >= 0",message="must be greater than or equal to 0",fieldPath=".initialDelaySeconds"
// +kubebuilder:validation:XValidation:rule="!has(self.timeoutSeconds) || self.timeoutSeconds >= 0",message="must be greater than or equal to 0",fieldPath=".timeoutSeconds"
// +kubebuilder:validation:XValidation:rule="!has(self.periodSeconds) || self.periodSeconds >= 0",message="must be greater than or equal to 0",fieldPath=".periodSeconds"
// +kubebuilder:validation:XValidation:rule="!has(self.successThreshold) || self.successThreshold >= 0",message="must be greater than or equal to 0",fieldPath=".successThreshold"
// +kubebuilder:validation:XValidation:rule="!has(self.failureThreshold) || self.failureThreshold >= 0",message="must be greater than or equal to 0",fieldPath=".failureThreshold"
type ContainerProbeSpec struct {
	corev1.Probe `json:",inline"`
}

// ProbeState is the result of a probe.
type ProbeState string

const (
	// ProbeSucceeded is of a probe that succeeded as often in a row as its successThreshold.
	ProbeSucceeded ProbeState = "Succeeded"
	// ProbeFailed is of a probe that failed as often in a row as its failureThreshold, or of a container that does not
	// run.
	ProbeFailed ProbeState = "Failed"
	// ProbeUnknown is of a probe that could not be run.
	ProbeUnknown ProbeState = "Unknown"
)

// ProbeMarkerPolicy is what a pod gets while the result is State. While the result is another one, it loses them.
//
// +kubebuilder:validation:XValidation:rule="(has(self.labels) && size(self.labels) > 0) || (has(self.annotations) && size(self.annotations) > 0)",message="labels and annotations cannot be empty at the same time"
type ProbeMarkerPolicy struct {
	// State is Succeeded or Failed.
	// +kubebuilder:validation:Enum=Succeeded;Failed
	State ProbeState `json:"state"`

	// Labels that the pod gets.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations that the pod gets.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodProbeMarkerStatus is the observed state of a PodProbeMarker.
type PodProbeMarkerStatus struct {
	// ObservedGeneration is the generation that this status is of.
	ObservedGeneration int64 `json:"observedGeneration"`

	// MatchedPods is how many pods are probed.
	// +optional
	MatchedPods int64 `json:"matchedPods,omitempty"`

	// Conditions say what the controller met.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PodProbeMarker probes containers of pods and writes the results into conditions, labels and annotations of the pods.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type PodProbeMarker struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PodProbeMarkerSpec   `json:"spec,omitempty"`
	Status PodProbeMarkerStatus `json:"status,omitempty"`
}

// PodProbeMarkerList is a list of PodProbeMarkers.
//
// +kubebuilder:object:root=true
type PodProbeMarkerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodProbeMarker `json:"items"`
}
