// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/annotation"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
)

// InconsistentReason returns why the running containers may differ from the spec, ""
// if they do not (PUB-05).
func InconsistentReason(pod *corev1.Pod) string {
	all := len(pod.Spec.Containers) > 0
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if digest := digestOf(c.Image); digest == "" {
			all = false
		} else if !runsDigest(pod, c.Name, digest) {
			return fmt.Sprintf("container %s does not run %s", c.Name, digest)
		}
	}
	if all { // digests identify the images that run
		return ""
	}
	if why := staleSidecarReason(pod); why != "" {
		return why
	}
	return inplace.IncompleteReason(pod)
}

func digestOf(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

// runsDigest compares a digest with the image ID of a container. A runtime writes the ID as repository and
// digest, or as the digest alone.
func runsDigest(pod *corev1.Pod, container, digest string) bool {
	for i := range pod.Status.ContainerStatuses {
		st := &pod.Status.ContainerStatuses[i]
		if st.Name == container {
			return st.ImageID == digest || strings.HasSuffix(st.ImageID, "@"+digest) || strings.HasSuffix(st.ImageID, "://"+digest)
		}
	}
	return false
}

// injected is what the annotation of a pod records of a SidecarSet. Releases before
// 0.3 recorded only the hash, and updated nothing in place.
type injected struct {
	Sidecars []string `json:"sidecarList"`
}

// staleSidecarReason returns why an in-place update of a SidecarSet is not complete (SS-11).
// It reads only the pod, which records the sets whose containers it has, and the containers from
// before their last update.
func staleSidecarReason(pod *corev1.Pod) string {
	raw, ok := pod.Annotations[kruise.SidecarSetHashKey]
	if !ok {
		return ""
	}
	sets, err := annotation.Decode[map[string]json.RawMessage](kruise.SidecarSetHashKey, raw)
	if err != nil || len(sets) == 0 {
		return "" // there is nothing to check
	}
	if len(pod.Status.ContainerStatuses) != len(pod.Spec.Containers) {
		return "not all containers have a status"
	}
	states := map[string]*kruise.InPlaceUpdateState{}
	if raw, ok := pod.Annotations[kruise.SidecarSetInPlaceUpdateStateKey]; ok {
		if states, err = annotation.Decode[map[string]*kruise.InPlaceUpdateState](kruise.SidecarSetInPlaceUpdateStateKey, raw); err != nil {
			return fmt.Sprintf("annotation %s cannot be read: %v", kruise.SidecarSetInPlaceUpdateStateKey, err)
		}
	}
	for name, raw := range sets {
		var set injected
		if err := json.Unmarshal(raw, &set); err != nil || states[name] == nil {
			continue
		}
		if why := inplace.UnreplacedReason(pod, states[name], set.Sidecars); why != "" {
			return why
		}
	}
	return ""
}
