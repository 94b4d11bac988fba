// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/containerstatus"
	"github.com/regatta-sh/regatta/controllers/workload/runtimemeta"
)

// OpenKruise records less of an update than this package does. For a container whose
// image changes it records only the imageID, and for one that restarts for its env nothing. Such
// an update is complete when OpenKruise saw it complete, or when each container was
// started from the present spec: its node agent reports that, or the container was
// started after the update began.
// started after the update began.

// byOpenKruise reports whether OpenKruise recorded an update: the record has no container ID.
func byOpenKruise(s *kruise.InPlaceUpdateState) bool {
	for _, last := range s.LastContainerStatuses {
		if last.ContainerID != "" {
			return false
		}
	}
	return true
}

// readyAgain reports whether the readiness gate of a pod was opened again. The gate is closed
// before an update, and opened when the update is complete.
func readyAgain(pod *corev1.Pod) bool {
	c := FindCondition(pod, kruise.InPlaceUpdateReady)
	return HasGate(pod) && c != nil && c.Status == corev1.ConditionTrue
}

// envPending returns the containers of an update by OpenKruise that have not restarted
// yet for the labels and annotations that their env reads.
func envPending(pod *corev1.Pod, s *kruise.InPlaceUpdateState) (names []string) {
	if !s.UpdateEnvFromMetadata || !byOpenKruise(s) {
		return nil
	}
	for _, batch := range s.ContainerBatchesRecord {
		for _, name := range batch.Containers {
			c := findContainer(pod, name)
			if _, image := s.LastContainerStatuses[name]; image || !runtimemeta.ReadsMetadata(c) {
				continue
			}
			st := statusOf(pod, name)
			if containerstatus.HasEnded(pod, name) && !isStatusStale(pod) {
				continue
			}
			if st == nil || isStatusStale(pod) || !(envTold(pod, st) == refreshed || startedSince(st, batch.Timestamp.Time)) {
				names = append(names, name)
			}
		}
	}
	return names
}

// startedBySpec reports whether a container that OpenKruise recorded was started from the
// image in the spec.
func startedBySpec(pod *corev1.Pod, st *corev1.ContainerStatus, since time.Time) bool {
	return toldBySpec(pod, st) || startedSince(st, since)
}

// startedSince reports whether a container is running and was started at a time or later.
// Both times have whole seconds.
func startedSince(st *corev1.ContainerStatus, since time.Time) bool {
	return !since.IsZero() && st.State.Running != nil && !st.State.Running.StartedAt.Time.Before(since.Truncate(time.Second))
}

// changedAt returns when an update changed a container.
func changedAt(s *kruise.InPlaceUpdateState, name string) time.Time {
	at := s.UpdateTimestamp.Time
	for _, batch := range s.ContainerBatchesRecord {
		if slices.Contains(batch.Containers, name) {
			at = batch.Timestamp.Time
		}
	}
	return at
}
