// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/runtimemeta"
)

// ContainersToRefresh names the containers that have to restart now for the labels and annotations
// that their env reads, unless they run with them already (PL-06): those that the update
// of the pod has begun with. Containers that wait for their batch do not, and none does
// before the pod has left its services or while it waits for its grace period.
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

// onlyEnv reports whether a record is of a container whose image stays, so that it restarts
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

// env is what the node agent says of the env that a container runs with.
type env string

const (
	untold    env = ""          // nothing of this run of the container
	outdated  env = "Outdated"  // other labels or annotations than the pod has now
	refreshed env = "Refreshed" // those that the pod has now
)

// envTold is A-05, rule 4, for one container.
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
// one. The node agent knows; it restarts only containers of pods that have the readiness
// gate. Where it has not written on the pod, or where the runtime does not tell it the env,
// a new container is the only sign. Once the gate was opened again, other clients may write
// the labels and annotations, and nothing restarts for them.
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

// tellsLater reports whether the node agent writes on the pod, but has not come to this run
// of the container yet.
func tellsLater(pod *corev1.Pod, st *corev1.ContainerStatus) bool {
	set, err := runtimemeta.DecodeAnnotation(pod)
	_, told := runtimemeta.ContainerMeta(pod, st)
	return err == nil && len(set.Containers) > 0 && !told
}

// toldBySpec reports whether the node agent saw that a container was started by the image
// that the spec names (A-05, rule 6).
func toldBySpec(pod *corev1.Pod, st *corev1.ContainerStatus) bool {
	told, ok := runtimemeta.ContainerMeta(pod, st)
	return ok && slices.Contains(runtimemeta.PlainHashes(findContainer(pod, st.Name)), told.Hashes.PlainHash)
}

// waitsFor says what a container that is not replaced yet waits for.
func waitsFor(st *corev1.ContainerStatus, before kruise.InPlaceUpdateContainerStatus) string {
	if onlyEnv(before) {
		return envWaits(st.Name)
	}
	return fmt.Sprintf("container %s still runs image %s", st.Name, st.Image)
}

func envWaits(name string) string {
	return fmt.Sprintf("container %s has not restarted for the labels and annotations that its env reads", name)
}
