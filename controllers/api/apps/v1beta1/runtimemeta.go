// SPDX-License-Identifier: Apache-2.0

package v1beta1

// RuntimeContainerMetaKey keeps the RuntimeContainerMetaSet of a pod.
const RuntimeContainerMetaKey = "apps.kruise.io/runtime-containers-meta"

// RuntimeContainerMetaSet is the JSON document in which the node agent says what its containers really run.
type RuntimeContainerMetaSet struct {
	Containers []RuntimeContainerMeta `json:"containers"`
}

// RuntimeContainerMeta is what one container runs.
type RuntimeContainerMeta struct {
	Name         string                 `json:"name"`
	ContainerID  string                 `json:"containerID"`
	RestartCount int32                  `json:"restartCount"`
	Hashes       RuntimeContainerHashes `json:"hashes"`
}

// RuntimeContainerHashes are compared with those of the pod's spec to tell whether an in-place update is complete.
type RuntimeContainerHashes struct {
	// PlainHash is the kubelet's hash of the container.
	PlainHash uint64 `json:"plainHash"`
	// ExtractedEnvFromMetadataHash is of the env that reads the pod's labels and annotations; 0 if there is none.
	ExtractedEnvFromMetadataHash uint64 `json:"extractedEnvFromMetadataHash,omitempty"`
}
