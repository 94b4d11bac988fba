// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SidecarSetSpec is the desired state of a SidecarSet.
// +kubebuilder:validation:XValidation:rule="(has(self.containers) && size(self.containers) > 0) || (has(self.initContainers) && size(self.initContainers) > 0)",message="at least one container is required, in containers or in initContainers",fieldPath=".containers"
type SidecarSetSpec struct {
	// Selector says into which pods the containers go, by their labels. The webhook refuses an empty one.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// NamespaceSelector says in which namespaces the pods are, by the namespaces' labels; in all of them if unset.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// InitContainers go among the init containers of the pod, in the order of their names. There must be at least one
	// container here or in containers.
	// +optional
	InitContainers []SidecarContainer `json:"initContainers,omitempty"`

	// Containers go among the containers of the pod. One that has the name of a container of the pod takes its place.
	// +optional
	Containers []SidecarContainer `json:"containers,omitempty"`

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
	UpdateStrategy SidecarSetUpdateStrategy `json:"updateStrategy,omitempty"`

	// InjectionStrategy says what new pods get.
	// +optional
	InjectionStrategy SidecarSetInjectionStrategy `json:"injectionStrategy,omitempty"`

	// RevisionHistoryLimit is how many revisions are kept, the latest included; 10 if unset. The latest always stays.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// PatchPodMetadata are annotations that pods get beside the containers.
	// +optional
	PatchPodMetadata []SidecarSetPatchPodMetadata `json:"patchPodMetadata,omitempty"`

	// CustomVersion names the revision of this spec, so that injectionStrategy.revision can ask for it by that name.
	// In v1alpha1 it is the label apps.kruise.io/sidecarset-custom-version.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	// +optional
	CustomVersion string `json:"customVersion,omitempty"`
}

// SidecarSetStatus is the observed state of a SidecarSet.
type SidecarSetStatus struct {
	// ObservedGeneration is the generation that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// MatchedPods is how many selected pods have all containers. A pod from before the SidecarSet does not count.
	MatchedPods int32 `json:"matchedPods"`

	// UpdatedPods is how many of them are of the latest revision.
	UpdatedPods int32 `json:"updatedPods"`

	// ReadyPods is how many of the matched pods are ready.
	ReadyPods int32 `json:"readyPods"`

	// UpdatedReadyPods is how many are of the latest revision and ready.
	// +optional
	UpdatedReadyPods int32 `json:"updatedReadyPods,omitempty"`

	// LatestRevision is the revision of the spec.
	// +optional
	LatestRevision string `json:"latestRevision,omitempty"`

	// CollisionCount makes names of revisions differ if their hashes do not.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// Conditions say what the controller met.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SidecarSet adds containers to pods as they are created, and updates the images of those containers in place.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="MATCHED",type="integer",JSONPath=".status.matchedPods",description="The number of pods that have the containers."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedPods",description="The number of pods updated."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyPods",description="The number of pods ready."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
type SidecarSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SidecarSetSpec   `json:"spec,omitempty"`
	Status SidecarSetStatus `json:"status,omitempty"`
}

// Hub marks SidecarSet as the version that all others are converted through.
func (*SidecarSet) Hub() {}

// SidecarSetList is a list of SidecarSets.
//
// +kubebuilder:object:root=true
type SidecarSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SidecarSet `json:"items"`
}
