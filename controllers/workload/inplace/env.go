// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/runtimemeta"
)

// ContainersToRefresh returns the containers that have to restart now for the labels and annotations
// that their env reads, unless they run with them already (PL-06): the containers that the update
// of the pod has begun with. Containers that wait for their batch do not restart yet. None restarts
// before the pod has left its services or while the pod waits for its grace period.
func ContainersToRefresh(pod *corev1.Pod) (names []string) {
	c := FindCondition(pod, kruise.InPlaceUpdateReady)
	s, err := DecodeState(pod)
	if c == nil || c.Status != corev1.ConditionFalse || InGrace(pod) || err != nil || s == nil {
		return nil
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		last, recorded := s.LastContainerStatuses[c.Name]
		begun := recorded && onlyEnv(last) || s.UpdateEnvFromMetadata && inBatches(s, c.Name)
		if begun && !awaitsBatch(s, c.Name) && runtimemeta.ReadsMetadata(c) {
			names = append(names, c.Name)
		}
	}
	return names
}

// onlyEnv reports whether the image of a recorded container does not change, so that the container restarts
// for its env alone.
func onlyEnv(last kruise.InPlaceUpdateContainerStatus) bool {
	return last.ImageID == "" && last.ContainerID != ""
}

func inBatches(s *kruise.InPlaceUpdateState, name string) bool {
	return slices.ContainsFunc(s.ContainerBatchesRecord, func(b kruise.InPlaceUpdateContainerBatch) bool {
		return slices.Contains(b.Containers, name)
	})
}

// awaitsBatch reports whether a container is to change with a batch that has not begun.
func awaitsBatch(s *kruise.InPlaceUpdateState, name string) bool {
	_, image := s.NextContainerImages[name]
	_, meta := s.NextContainerRefMetadata[name]
	return image || meta
}

// env is what the node agent reports of the env that a container runs with.
type env string

const (
	untold    env = ""          // no report of this run of the container
	outdated  env = "Outdated"  // other labels or annotations than the pod has now
	refreshed env = "Refreshed" // those that the pod has now
)

// envTold applies A-05, rule 4, to one container.
func envTold(pod *corev1.Pod, st *corev1.ContainerStatus) env {
	told, ok := runtimemeta.ContainerMeta(pod, st)
	switch {
	case !ok || told.Hashes.ExtractedEnvFromMetadataHash == 0:
		return untold
	case told.Hashes.ExtractedEnvFromMetadataHash == runtimemeta.ExpectedEnvHash(pod, findContainer(pod, st.Name)):
		return refreshed
	}
	return outdated
}

// envReplaced reports whether a container of which only the env changes runs with the new
// env. The node agent reports that. It restarts only containers of pods that have the readiness
// gate. If it has not written on the pod, or if the runtime does not report the env to it,
// a new container is the only evidence. After the gate was opened again, other clients may change
// the labels and annotations, and nothing restarts for these changes.
func envReplaced(pod *corev1.Pod, st *corev1.ContainerStatus, restarted bool) bool {
	switch said := envTold(pod, st); {
	case !HasGate(pod):
		return restarted
	case readyAgain(pod):
		return true
	case said != untold:
		return said == refreshed && st.State.Running != nil
	}
	return restarted && !tellsLater(pod, st)
}

// tellsLater reports whether the node agent writes on the pod, but has not reported this run
// of the container yet.
func tellsLater(pod *corev1.Pod, st *corev1.ContainerStatus) bool {
	set, err := runtimemeta.DecodeAnnotation(pod)
	_, told := runtimemeta.ContainerMeta(pod, st)
	return err == nil && len(set.Containers) > 0 && !told
}

// toldBySpec reports whether the node agent has reported that a container was started from the image
// in the spec (A-05, rule 6).
func toldBySpec(pod *corev1.Pod, st *corev1.ContainerStatus) bool {
	told, ok := runtimemeta.ContainerMeta(pod, st)
	return ok && slices.Contains(runtimemeta.PlainHashes(findContainer(pod, st.Name)), told.Hashes.PlainHash)
}

// waitsFor returns what a container that is not replaced yet waits for.
func waitsFor(st *corev1.ContainerStatus, before kruise.InPlaceUpdateContainerStatus) string {
	if onlyEnv(before) {
		return envWaits(st.Name)
	}
	return fmt.Sprintf("container %s still runs image %s", st.Name, st.Image)
}

func envWaits(name string) string {
	return fmt.Sprintf("container %s has not restarted for the labels and annotations that its env reads", name)
}
