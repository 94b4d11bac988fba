// SPDX-License-Identifier: Apache-2.0

package v1beta1

import corev1 "k8s.io/api/core/v1"

// PodInjectPolicyType is where a container goes among those of the pod.
// +kubebuilder:validation:Enum=BeforeAppContainer;AfterAppContainer
type PodInjectPolicyType string

const (
	// BeforeAppContainerType puts the container in front of those of the pod.
	BeforeAppContainerType PodInjectPolicyType = "BeforeAppContainer"
	// AfterAppContainerType puts the container behind those of the pod.
	AfterAppContainerType PodInjectPolicyType = "AfterAppContainer"
)

// SidecarContainerUpgradeType is how a container of a running pod gets a new image.
// +kubebuilder:validation:Enum=ColdUpgrade;HotUpgrade
type SidecarContainerUpgradeType string

const (
	// SidecarContainerColdUpgrade restarts the container with the new image.
	SidecarContainerColdUpgrade SidecarContainerUpgradeType = "ColdUpgrade"
	// SidecarContainerHotUpgrade runs two containers in turn, so that the new one can take over from the old one.
	SidecarContainerHotUpgrade SidecarContainerUpgradeType = "HotUpgrade"
)

// ShareVolumePolicyType says whether a container shares volumes with the other containers of the pod.
// +kubebuilder:validation:Enum=enabled;disabled
type ShareVolumePolicyType string

const (
	// ShareVolumePolicyEnabled gives the container all that the others have.
	ShareVolumePolicyEnabled ShareVolumePolicyType = "enabled"
	// ShareVolumePolicyDisabled gives the container its own only.
	ShareVolumePolicyDisabled ShareVolumePolicyType = "disabled"
)

// SidecarContainer is a container that goes into pods: all fields of a container of a pod, and some more.
//
// +kubebuilder:pruning:PreserveUnknownFields
type SidecarContainer struct {
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	corev1.Container `json:",inline"`

	// PodInjectPolicy is BeforeAppContainer or AfterAppContainer. If unset, an init container goes behind those of the
	// pod and any other container in front of them.
	// +optional
	PodInjectPolicy PodInjectPolicyType `json:"podInjectPolicy,omitempty"`

	// UpgradeStrategy says how the container of a running pod gets a new image.
	// +optional
	UpgradeStrategy SidecarContainerUpgradeStrategy `json:"upgradeStrategy,omitempty"`

	// ShareVolumePolicy, if enabled, mounts every volume that another container of the pod mounts at the same path.
	// +optional
	ShareVolumePolicy ShareVolumePolicy `json:"shareVolumePolicy,omitempty"`

	// ShareVolumeDevicePolicy, if enabled, does the same with block devices.
	// +optional
	ShareVolumeDevicePolicy *ShareVolumePolicy `json:"shareVolumeDevicePolicy,omitempty"`

	// TransferEnv copies environment variables from other containers of the pod. A copied variable replaces one of the
	// same name.
	// +optional
	TransferEnv []TransferEnvVar `json:"transferEnv,omitempty"`

	// ResourcesPolicy computes the resources of the container from those of the pod's other containers. It cannot be
	// set together with resources.
	// +optional
	ResourcesPolicy *ResourcesPolicy `json:"resourcesPolicy,omitempty"`
}

// SidecarContainerUpgradeStrategy says how the container of a running pod gets a new image.
type SidecarContainerUpgradeStrategy struct {
	// UpgradeType is ColdUpgrade or HotUpgrade; ColdUpgrade if unset. It cannot be changed.
	// +optional
	UpgradeType SidecarContainerUpgradeType `json:"upgradeType,omitempty"`

	// HotUpgradeEmptyImage is what the one of the two containers runs that has no work. It is of HotUpgrade only.
	// +optional
	HotUpgradeEmptyImage string `json:"hotUpgradeEmptyImage,omitempty"`
}

// ShareVolumePolicy says whether a container shares volumes with the other containers of the pod.
type ShareVolumePolicy struct {
	// Type is enabled or disabled; disabled if unset.
	// +optional
	Type ShareVolumePolicyType `json:"type,omitempty"`
}

// TransferEnvVar copies environment variables from another container of the pod. What is not there is not copied.
type TransferEnvVar struct {
	// SourceContainerName is the name of the container to copy from.
	// +optional
	SourceContainerName string `json:"sourceContainerName,omitempty"`

	// SourceContainerNameFrom reads that name from the pod. It is of effect if sourceContainerName is empty.
	// +optional
	SourceContainerNameFrom *SourceContainerNameSource `json:"sourceContainerNameFrom,omitempty"`

	// EnvName is the name of one variable.
	// +optional
	EnvName string `json:"envName,omitempty"`

	// EnvNames are names of more variables.
	// +optional
	EnvNames []string `json:"envNames,omitempty"`
}

// SourceContainerNameSource says where in the pod the name of a container stands.
type SourceContainerNameSource struct {
	// FieldRef is a label or an annotation of the pod. Its apiVersion is v1 if unset.
	// +optional
	FieldRef *corev1.ObjectFieldSelector `json:"fieldRef,omitempty"`
}
