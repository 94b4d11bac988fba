// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InPlaceUpdateStateKey keeps the InPlaceUpdateState of a pod, InPlaceUpdateGraceKey its UpdateSpec while the grace period
// runs. Releases before 1.0 wrote the legacy keys; they are still read, and dropped at the next write.
const (
	InPlaceUpdateStateKey       = "apps.kruise.io/inplace-update-state"
	InPlaceUpdateStateLegacyKey = "inplace-update-state"
	InPlaceUpdateGraceKey       = "apps.kruise.io/inplace-update-grace"
	InPlaceUpdateGraceLegacyKey = "inplace-update-grace"
)

const (
	// InPlaceUpdateReady is False while a pod is updated in place. It is a readiness gate of every pod of a CloneSet.
	InPlaceUpdateReady corev1.PodConditionType = "InPlaceUpdateReady"
	// StartInPlaceUpdateReason is why InPlaceUpdateReady is False.
	StartInPlaceUpdateReason = "StartInPlaceUpdate"
)

// InPlaceUpdateState is the JSON document that records the current or the last in-place update of a pod.
type InPlaceUpdateState struct {
	// Revision that the pod is brought to.
	Revision string `json:"revision"`
	// UpdateTimestamp is when the update began.
	UpdateTimestamp metav1.Time `json:"updateTimestamp"`
	// LastContainerStatuses are the statuses before the update, of containers whose image changes.
	LastContainerStatuses map[string]InPlaceUpdateContainerStatus `json:"lastContainerStatuses"`
	// UpdateEnvFromMetadata says that containers restart because an env reads changed metadata.
	UpdateEnvFromMetadata bool `json:"updateEnvFromMetadata,omitempty"`
	// UpdateResources says that resources of containers change.
	UpdateResources bool `json:"updateResources,omitempty"`
	// UpdateImages says that images of containers change.
	UpdateImages bool `json:"updateImages,omitempty"`
	// NextContainerImages, by container, are what later batches will change.
	NextContainerImages map[string]string `json:"nextContainerImages,omitempty"`
	// NextContainerRefMetadata, by container, are what later batches will change.
	NextContainerRefMetadata map[string]ContainerRefMetadata `json:"nextContainerRefMetadata,omitempty"`
	// NextContainerResources, by container, are what later batches will change.
	NextContainerResources map[string]corev1.ResourceRequirements `json:"nextContainerResources,omitempty"`
	// PreCheckBeforeNext is what the next batch waits for.
	PreCheckBeforeNext *InPlaceUpdatePreCheckBeforeNext `json:"preCheckBeforeNext,omitempty"`
	// ContainerBatchesRecord are the batches done so far.
	ContainerBatchesRecord []InPlaceUpdateContainerBatch `json:"containerBatchesRecord,omitempty"`
}

// InPlaceUpdateContainerStatus is what is remembered of a container to tell when its image has changed.
type InPlaceUpdateContainerStatus struct {
	ImageID string `json:"imageID,omitempty"`
	// ContainerID is ours, not OpenKruise's: where two tags have one digest the imageID never changes, and a new
	// container is the only sign that the update is complete.
	ContainerID string `json:"containerID,omitempty"`
	// Image that the container was started by, as the spec named it. Ours too: an update that undoes another before
	// the kubelet has seen either is complete with the container that there is.
	Image string `json:"image,omitempty"`
}

// InPlaceUpdatePreCheckBeforeNext is what the next batch of containers waits for.
type InPlaceUpdatePreCheckBeforeNext struct {
	ContainersRequiredReady []string `json:"containersRequiredReady,omitempty"`
}

// InPlaceUpdateContainerBatch are containers that were updated together.
type InPlaceUpdateContainerBatch struct {
	Timestamp  metav1.Time `json:"timestamp"`
	Containers []string    `json:"containers"`
}

// ContainerRefMetadata are labels and annotations of the pod that an env of a container reads.
type ContainerRefMetadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// UpdateSpec is the JSON document that says how a pod is brought to a revision in place.
type UpdateSpec struct {
	// Revision that the pod is brought to.
	Revision string `json:"revision"`
	// ContainerImages are the new images by container.
	ContainerImages map[string]string `json:"containerImages,omitempty"`
	// ContainerRefMetadata are the new labels and annotations that an env of the container reads, by container.
	ContainerRefMetadata map[string]ContainerRefMetadata `json:"containerRefMetadata,omitempty"`
	// ContainerResources are the new resources by container.
	ContainerResources map[string]corev1.ResourceRequirements `json:"containerResources,omitempty"`
	// MetaDataPatch is a strategic merge patch of all other metadata. In JSON it is base64, as OpenKruise writes it,
	// so that a pod in its grace period survives a change from one manager to the other.
	MetaDataPatch []byte `json:"metaDataPatch,omitempty"`
	// UpdateEnvFromMetadata says that ContainerRefMetadata restarts containers.
	UpdateEnvFromMetadata bool `json:"updateEnvFromMetadata,omitempty"`
	// GraceSeconds is the time between not ready and the change.
	GraceSeconds int32 `json:"graceSeconds,omitempty"`
	// OldTemplate is the template of the pod's revision.
	OldTemplate *corev1.PodTemplateSpec `json:"oldTemplate,omitempty"`
	// NewTemplate is the template of the revision it is brought to.
	NewTemplate *corev1.PodTemplateSpec `json:"newTemplate,omitempty"`
}
