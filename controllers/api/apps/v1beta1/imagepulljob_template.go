// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Defaults of a PullPolicy.
const (
	DefaultPullTimeoutSeconds = 600
	DefaultPullBackoffLimit   = 3
)

// ImagePullPolicy is whether an image that a node has is pulled again.
type ImagePullPolicy string

const (
	// PullAlways pulls the image even if the node has it.
	PullAlways ImagePullPolicy = "Always"
	// PullIfNotPresent is done if the node has the image.
	PullIfNotPresent ImagePullPolicy = "IfNotPresent"
)

// ImagePullJobTemplate says where and how images are pulled: what ImagePullJob and ImageListPullJob share.
type ImagePullJobTemplate struct {
	// PullSecrets are names of Secrets of the job's namespace to log in to registries with. They cannot be changed.
	// +optional
	PullSecrets []string `json:"pullSecrets,omitempty"`

	// Selector says which nodes pull; all if neither this nor podSelector is set.
	// +optional
	Selector *ImagePullJobNodeSelector `json:"selector,omitempty"`

	// PodSelector lets the nodes pull on which matching pods of the job's namespace run. It cannot go with selector.
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// Parallelism is on how many nodes an image is pulled at once; 1 if unset, and 0 pauses the job. A percentage is
	// refused.
	// +kubebuilder:validation:XValidation:rule="type(self) != string",message="parallelism does not support percentage value"
	// +kubebuilder:validation:XValidation:rule="type(self) == string || self >= 0",message="must be greater than or equal to 0"
	// +optional
	Parallelism *intstr.IntOrString `json:"parallelism,omitempty"`

	// PullPolicy says how long and how often a node tries.
	// +optional
	PullPolicy *PullPolicy `json:"pullPolicy,omitempty"`

	// CompletionPolicy says when the job ends. One that never ends pulls the image again about once a day.
	CompletionPolicy CompletionPolicy `json:"completionPolicy"`

	// SandboxConfig is handed to the container runtime with every pull.
	// +optional
	SandboxConfig *SandboxConfig `json:"sandboxConfig,omitempty"`

	// ImagePullPolicy is Always or IfNotPresent; IfNotPresent if unset.
	// +kubebuilder:validation:Enum=Always;IfNotPresent
	// +optional
	ImagePullPolicy ImagePullPolicy `json:"imagePullPolicy,omitempty"`
}

// ImagePullJobNodeSelector says which nodes pull: by name or by label, not both.
//
// +kubebuilder:validation:XValidation:rule="!has(self.names) || size(self.names) == 0 || ((!has(self.matchLabels) || size(self.matchLabels) == 0) && (!has(self.matchExpressions) || size(self.matchExpressions) == 0))",message="can not set both names and labelSelector in this spec.selector"
type ImagePullJobNodeSelector struct {
	// Names of nodes.
	// +optional
	Names []string `json:"names,omitempty"`

	metav1.LabelSelector `json:",inline"`
}

// PullPolicy says how long and how often a node tries to pull an image.
type PullPolicy struct {
	// TimeoutSeconds is how long one try may take; 600 if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// BackoffLimit is how often a node tries again before it gives up; 3 if unset.
	// +kubebuilder:validation:Minimum=0
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
}

// SandboxConfig describes to the container runtime the pod that an image is pulled for.
type SandboxConfig struct {
	// Labels of that pod.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of that pod.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
