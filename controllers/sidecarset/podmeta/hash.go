// SPDX-License-Identifier: Apache-2.0

// Package podmeta reads and writes the annotations of SidecarSets and of the pods that have their containers (SS-19, SS-20). All of them are
// written as OpenKruise writes them, byte for byte: no pod is updated because a cluster changes from OpenKruise to Regatta.
package podmeta

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// Hashes are the two hashes of the containers of a SidecarSet (SS-19).
type Hashes struct {
	// Hash is the hash of the containers.
	Hash string
	// WithoutImage is the hash of the containers without their images: a pod with another one cannot be updated in place.
	WithoutImage string
}

// HashesOf hashes the containers of a SidecarSet. Init containers count if one of them stays running.
func HashesOf(spec *kruise.SidecarSetSpec) (Hashes, error) {
	whole, err := hashContainers(spec.Containers, spec.InitContainers)
	if err != nil {
		return Hashes{}, err
	}
	bare, err := hashContainers(withoutImages(spec.Containers), withoutImages(spec.InitContainers))
	if err != nil {
		return Hashes{}, err
	}
	return Hashes{Hash: whole, WithoutImage: bare}, nil
}

// SetAnnotations annotates a SidecarSet with its hashes.
func (h Hashes) SetAnnotations(set *kruise.SidecarSet) {
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	set.Annotations[kruise.SidecarSetHashKey], set.Annotations[kruise.SidecarSetHashWithoutImageKey] = h.Hash, h.WithoutImage
}

func hashContainers(containers, inits []kruise.SidecarContainer) (string, error) {
	document := map[string]any{"containers": containers}
	for i := range inits {
		if StaysRunning(&inits[i].Container) {
			document["initContainers"] = inits
			break
		}
	}
	raw, err := json.Marshal(document)
	if err != nil {
		return "", fmt.Errorf("hashing containers: %w", err)
	}
	sum := sha256.Sum256(raw)
	return rand.SafeEncodeString(hex.EncodeToString(sum[:])), nil
}

func withoutImages(containers []kruise.SidecarContainer) []kruise.SidecarContainer {
	if containers == nil {
		return nil // it hashes to something else than an empty list
	}
	out := make([]kruise.SidecarContainer, len(containers))
	copy(out, containers)
	for i := range out {
		out[i].Image = ""
	}
	return out
}

// StaysRunning reports whether an init container is a sidecar of Kubernetes itself, which runs as long as its pod.
func StaysRunning(container *corev1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// IsHot reports whether a container is upgraded without interruption, by a pair of containers (SS-07).
func IsHot(container *kruise.SidecarContainer) bool {
	return container.UpgradeStrategy.UpgradeType == kruise.SidecarContainerHotUpgrade
}

// HotPair are the names of the two containers of a hot pair.
func HotPair(name string) (first, second string) { return name + "-1", name + "-2" }
