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

// OpenKruise records less of an update than this package does: of a container whose
// image changes only the imageID, and nothing of one that restarts for its env. Such
// an update is complete when OpenKruise saw it complete, or when each container was
// started by the spec as it is now: its node agent says so, or the container was
// started after the update began.

// byOpenKruise reports whether OpenKruise recorded an update: there is no container id.
func byOpenKruise(s *kruise.InPlaceUpdateState) bool {
	for _, last := range s.LastContainerStatuses {
		if last.ContainerID != "" {
			return false
		}
	}
	return true
}

// readyAgain reports whether the readiness gate of a pod was opened again. It is closed
// ahead of an update, and opened when that is complete.
func readyAgain(pod *corev1.Pod) bool {
	c := FindCondition(pod, kruise.InPlaceUpdateReady)
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

// startedBySpec reports whether a container that OpenKruise recorded was started by the
// image that the spec names.
func startedBySpec(pod *corev1.Pod, st *corev1.ContainerStatus, since time.Time) bool {
	return toldBySpec(pod, st) || startedSince(st, since)
}

// startedSince reports whether a container runs that was started at a time or later.
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
