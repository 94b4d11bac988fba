// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/dump"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// OpenKruise records less of an update than this package does: of a container whose
// image changes only the imageID, and nothing of one that restarts for its env. Such
// an update is complete when OpenKruise saw it complete, or when each container was
// started by the spec as it is now: its node agent says so, or the container was
// started after the update began.

// byOpenKruise says whether OpenKruise recorded an update: there is no container id.
func byOpenKruise(s *kruise.InPlaceUpdateState) bool {
	for _, last := range s.LastContainerStatuses {
		if last.ContainerID != "" {
			return false
		}
	}
	return true
}

// readyAgain says whether the readiness gate of a pod was opened again. It is closed
// ahead of an update, and opened when that is complete.
func readyAgain(pod *corev1.Pod) bool {
	c := Condition(pod, kruise.InPlaceUpdateReady)
	return HasGate(pod) && c != nil && c.Status == corev1.ConditionTrue
}

// envPending names the containers of an update by OpenKruise that have not restarted
// yet for the labels and annotations that their env reads.
func envPending(pod *corev1.Pod, s *kruise.InPlaceUpdateState) (names []string) {
	if !s.UpdateEnvFromMetadata || !byOpenKruise(s) {
		return nil
	}
	for _, batch := range s.ContainerBatchesRecord {
		for _, name := range batch.Containers {
			env := metadataEnv(pod, container(pod, name))
			if _, image := s.LastContainerStatuses[name]; image || len(env) == 0 {
				continue
			}
			st := statusOf(pod, name)
			if st == nil || stale(pod) || !(hashOf(pod, st).ExtractedEnvFromMetadataHash == agentHash(env) || startedSince(st, batch.Timestamp.Time)) {
				names = append(names, name)
			}
		}
	}
	return names
}

// startedBySpec says whether a container that OpenKruise recorded was started by the
// image that the spec names.
func startedBySpec(pod *corev1.Pod, st *corev1.ContainerStatus, since time.Time) bool {
	return slices.Contains(kubeletHashes(container(pod, st.Name)), hashOf(pod, st).PlainHash) || startedSince(st, since)
}

// startedSince says whether a container runs that was started at a time or later.
// Both times have whole seconds.
func startedSince(st *corev1.ContainerStatus, since time.Time) bool {
	return !since.IsZero() && st.State.Running != nil && !st.State.Running.StartedAt.Time.Before(since.Truncate(time.Second))
}

// changedAt is when an update changed a container.
func changedAt(s *kruise.InPlaceUpdateState, name string) time.Time {
	at := s.UpdateTimestamp.Time
	for _, batch := range s.ContainerBatchesRecord {
		if slices.Contains(batch.Containers, name) {
			at = batch.Timestamp.Time
		}
	}
	return at
}

// hashOf has what the node agent wrote of the very container that the status tells
// of, zeros if nothing.
func hashOf(pod *corev1.Pod, st *corev1.ContainerStatus) kruise.RuntimeContainerHashes {
	set := kruise.RuntimeContainerMetaSet{}
	if json.Unmarshal([]byte(pod.Annotations[kruise.RuntimeContainerMetaKey]), &set) != nil {
		return kruise.RuntimeContainerHashes{}
	}
	for _, c := range set.Containers {
		if c.Name == st.Name && c.ContainerID != "" && c.ContainerID == st.ContainerID {
			return c.Hashes
		}
	}
	return kruise.RuntimeContainerHashes{}
}

// kubeletHashes are the hashes by which kubelets know a container: of its name and
// image, and of all of it before Kubernetes 1.31.
func kubeletHashes(c *corev1.Container) []uint64 {
	return []uint64{agentHash(map[string]string{"name": c.Name, "image": c.Image}), agentHash(c)}
}

// metadataEnv is the env of a container that reads labels and annotations of its
// pod, with the values that they have now.
func metadataEnv(pod *corev1.Pod, c *corev1.Container) (out []corev1.EnvVar) {
	for _, e := range c.Env {
		if e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
			continue
		}
		if kind, key, ok := fieldRef(e.ValueFrom.FieldRef.FieldPath); ok {
			m := Metadata{Labels: pod.Labels, Annotations: pod.Annotations}
			value, _ := m.get(kind, key)
			out = append(out, corev1.EnvVar{Name: e.Name, Value: value})
		}
	}
	return out
}

// agentHash is the hash of kubelets and of OpenKruise's node agent.
func agentHash(v any) uint64 {
	raw, err := json.Marshal(v)
	if err != nil {
		return 0 // cannot be: containers and env are plain values
	}
	h := fnv.New32a()
	fmt.Fprint(h, dump.ForHash(raw))
	return uint64(h.Sum32())
}
