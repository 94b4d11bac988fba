// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// SidecarSetSpec is the desired state of a SidecarSet.
// +kubebuilder:validation:XValidation:rule="(has(self.containers) && size(self.containers) > 0) || (has(self.initContainers) && size(self.initContainers) > 0)",message="at least one container is required, in containers or in initContainers",fieldPath=".containers"
type SidecarSetSpec struct {
	// Selector says into which pods the containers go, by their labels. The webhook refuses an empty one.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Namespace is the one namespace in which the pods are. If set, namespaceSelector has no effect.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// NamespaceSelector says in which namespaces the pods are, by the namespaces' labels; in all of them if unset.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// InitContainers go among the init containers of the pod, in the order of their names. There must be at least one
	// container here or in containers.
	// +optional
	InitContainers []v1beta1.SidecarContainer `json:"initContainers,omitempty"`

	// Containers go among the containers of the pod. One that has the name of a container of the pod takes its place.
	// +optional
	Containers []v1beta1.SidecarContainer `json:"containers,omitempty"`

	// Volumes are added to the pod where one of the containers mounts them.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	Volumes []corev1.Volume `json:"volumes,omitempty"`

	// ImagePullSecrets are added to those of a new pod. They must exist in the namespace of the pod.
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// UpdateStrategy says how pods that have the containers get new images.
	// +optional
	UpdateStrategy v1beta1.SidecarSetUpdateStrategy `json:"updateStrategy,omitempty"`

	// InjectionStrategy says what new pods get.
	// +optional
	InjectionStrategy v1beta1.SidecarSetInjectionStrategy `json:"injectionStrategy,omitempty"`

	// RevisionHistoryLimit is how many revisions are kept, the latest included; 10 if unset. The latest always stays.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// PatchPodMetadata are annotations that pods get beside the containers.
	// +optional
	PatchPodMetadata []v1beta1.SidecarSetPatchPodMetadata `json:"patchPodMetadata,omitempty"`
}

// SidecarSet adds containers to pods as they are created, and updates the images of those containers in place. Its
// version is the label apps.kruise.io/sidecarset-custom-version.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="MATCHED",type="integer",JSONPath=".status.matchedPods",description="The number of pods that have the containers."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedPods",description="The number of pods updated."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyPods",description="The number of pods ready."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
type SidecarSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SidecarSetSpec           `json:"spec,omitempty"`
	Status v1beta1.SidecarSetStatus `json:"status,omitempty"`
}

// SidecarSetList is a list of SidecarSets.
//
// +kubebuilder:object:root=true
type SidecarSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SidecarSet `json:"items"`
}
