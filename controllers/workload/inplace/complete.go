// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/containerstatus"
)

// IncompleteReason returns why a pod's last in-place update is not complete yet, "" when it
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

// batchIncomplete checks only the containers of the batch that runs.
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

// UnreplacedReason returns which of the named containers an update recorded and has not
// replaced yet, "" if none. It is the part of A-05 that applies to updates which other controllers record in
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

// isReplaced reports whether a container runs the image in the spec, as far as the
// kubelet has reported the pod as it is now. Another imageID, the image's name or its
// digest prove it. If two tags have the same digest, the imageID never changes and
// the name may be that of either. So a new container proves it too;
// OpenKruise waits indefinitely in this case. A container that was started from the same
// image need not be replaced: the update was undone before the kubelet saw it.
func isReplaced(pod *corev1.Pod, st *corev1.ContainerStatus, before kruise.InPlaceUpdateContainerStatus, since time.Time) bool {
	if isStatusStale(pod) {
		return false
	}
	if containerstatus.HasEnded(pod, st.Name) { // nothing runs, and no container will replace it
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

// isStatusStale reports whether the status is from before the last change of the pod.
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
