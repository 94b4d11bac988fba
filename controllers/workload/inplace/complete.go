// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/containerstatus"
)

// IncompleteReason says why a pod's last in-place update is not done yet, "" when it
// is or there was none.
func IncompleteReason(pod *corev1.Pod) string {
	if InGrace(pod) {
		return "still in grace period of in-place update"
	}
	s, err := DecodeState(pod)
	if err != nil {
		return err.Error()
	}
	if s == nil {
		return ""
	}
	if len(s.NextContainerImages)+len(s.NextContainerRefMetadata)+len(s.NextContainerResources) > 0 {
		return "existing containers to in-place update in next batches"
	}
	return batchIncomplete(pod, s)
}

// batchIncomplete looks only at the containers of the batch that runs.
func batchIncomplete(pod *corev1.Pod, s *kruise.InPlaceUpdateState) string {
	if s.UpdateResources {
		if why := pendingResizeReason(pod); why != "" {
			return why
		}
	}
	if byOpenKruise(s) && readyAgain(pod) {
		return ""
	}
	for name, before := range s.LastContainerStatuses {
		st := statusOf(pod, name)
		if st == nil {
			return fmt.Sprintf("not found statuses of containers: %s has none", name)
		}
		if !isReplaced(pod, st, before, changedAt(s, name)) {
			return waitsFor(st, before)
		}
	}
	if names := envPending(pod, s); len(names) > 0 {
		return envWaits(names[0])
	}
	return ""
}

// UnreplacedReason says which of the named containers an update recorded and has not
// replaced yet, "" if none: what is left of A-05 for updates that others record in
// the same way (SS-11).
func UnreplacedReason(pod *corev1.Pod, s *kruise.InPlaceUpdateState, names []string) string {
	for _, name := range names {
		before, recorded := s.LastContainerStatuses[name]
		st := statusOf(pod, name)
		if recorded && (st == nil || !isReplaced(pod, st, before, changedAt(s, name))) {
			return fmt.Sprintf("container %s does not run its new image yet", name)
		}
	}
	return ""
}

// isReplaced reports whether a container runs what the spec says, as far as the
// kubelet has told of the pod as it is now. Another imageID, the image's name or
// digest prove it. Where two tags have one digest the imageID never changes and
// the name may be that of either, so that a new container proves it too:
// OpenKruise hangs there indefinitely. And a container that was started by the very
// image need not be replaced: an update was undone before it was seen.
func isReplaced(pod *corev1.Pod, st *corev1.ContainerStatus, before kruise.InPlaceUpdateContainerStatus, since time.Time) bool {
	if isStatusStale(pod) {
		return false
	}
	if containerstatus.HasEnded(pod, st.Name) { // it runs nothing, and nothing comes in its place
		return true
	}
	if before.ContainerID == "" && before.ImageID != "" && startedBySpec(pod, st, since) {
		return true
	}
	restarted := before.ContainerID != "" && st.ContainerID != "" && st.ContainerID != before.ContainerID && st.State.Running != nil
	if onlyEnv(before) {
		return envReplaced(pod, st, restarted)
	}
	image := imageOf(pod, st.Name)
	undone := before.Image != "" && image == before.Image && st.ContainerID == before.ContainerID
	return restarted || undone || (st.ImageID != "" && st.ImageID != before.ImageID) || sameImage(image, st) || toldBySpec(pod, st)
}

// isStatusStale reports whether the status is of the pod before its last change.
func isStatusStale(pod *corev1.Pod) bool {
	g := pod.Status.ObservedGeneration
	return g != 0 && g < pod.Generation
}

func statusOf(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == name {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

func imageOf(pod *corev1.Pod, name string) string {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return pod.Spec.Containers[i].Image
		}
	}
	return ""
}
