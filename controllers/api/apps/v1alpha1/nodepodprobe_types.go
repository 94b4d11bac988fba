// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodePodProbeSpec is the probes that a node runs.
type NodePodProbeSpec struct {
	// PodProbes by pod.
	// +optional
	PodProbes []PodProbe `json:"podProbes,omitempty"`
}

// PodProbe is the probes of one pod.
type PodProbe struct {
	// Name of the pod.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// Namespace of the pod.
	// +kubebuilder:validation:MinLength=1
	Namespace string `json:"namespace"`

	// UID of the pod. The entry is removed once the pod of that name has another one.
	// +kubebuilder:validation:MinLength=1
	UID string `json:"uid"`

	// IP of the pod, which HTTP requests and TCP connections go to.
	IP string `json:"IP"`

	// Probes of the pod.
	// +optional
	Probes []ContainerProbe `json:"probes,omitempty"`
}

// ContainerProbe is one probe of one container.
type ContainerProbe struct {
	// Name is that of the PodProbeMarker and that of its probe, with a # between them.
	// +kubebuilder:validation:Pattern=`^[^#]+#[^#]+$`
	Name string `json:"name"`

	// ContainerName is the container that is probed.
	// +kubebuilder:validation:MinLength=1
	ContainerName string `json:"containerName"`

	// Probe as the PodProbeMarker has it, but with the numbers of ports that it names.
	Probe ContainerProbeSpec `json:"probe"`
}

// NodePodProbeStatus is the results of the probes.
type NodePodProbeStatus struct {
	// PodProbeStatuses by pod.
	// +optional
	PodProbeStatuses []PodProbeStatus `json:"podProbeStatuses,omitempty"`

	// Conditions say what the controller met.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PodProbeStatus is the results of one pod.
type PodProbeStatus struct {
	// Name of the pod.
	Name string `json:"name"`

	// Namespace of the pod.
	Namespace string `json:"namespace"`

	// UID of the pod.
	UID string `json:"uid"`

	// ProbeStates are the results of those probes that have one.
	// +optional
	ProbeStates []ContainerProbeState `json:"probeStates,omitempty"`
}

// ContainerProbeState is the result of one probe.
type ContainerProbeState struct {
	// Name of the probe, as in the spec.
	Name string `json:"name"`

	// State is Succeeded, Failed or Unknown; empty until there is a result.
	State ProbeState `json:"state"`

	// LastProbeTime is when the probe last ran before the result was written.
	// +optional
	LastProbeTime *metav1.Time `json:"lastProbeTime,omitempty"`

	// LastTransitionTime is when the state last changed.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`

	// Message is what the probe answered, or why it failed; cut to 1024 bytes.
	// +optional
	Message string `json:"message,omitempty"`
}

// NodePodProbe is the probes that a node runs for PodProbeMarkers, and their results. It is named after its node and
// comes and goes with it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
type NodePodProbe struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodePodProbeSpec   `json:"spec,omitempty"`
	Status NodePodProbeStatus `json:"status,omitempty"`
}

// NodePodProbeList is a list of NodePodProbes.
//
// +kubebuilder:object:root=true
type NodePodProbeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodePodProbe `json:"items"`
}
