package inplace

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// Incomplete says why a pod's last in-place update is not done yet, "" when it
// is or there was none.
func Incomplete(pod *corev1.Pod) string {
	if InGrace(pod) {
		return "still in grace period of in-place update"
	}
	s, err := State(pod)
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
		if why := resourcesIncomplete(pod); why != "" {
			return why
		}
	}
	for name, before := range s.LastContainerStatuses {
		st := statusOf(pod, name)
		if st == nil {
			return fmt.Sprintf("not found statuses of containers: %s has none", name)
		}
		if !replaced(pod, st, before) {
			return fmt.Sprintf("container %s still runs image %s", name, st.Image)
		}
	}
	return ""
}

// replaced says whether a container runs what the spec says. A new imageID or
// the new image's name prove it. Where both tags have one digest neither ever
// changes, so that a new, running container proves it too, once the kubelet has
// seen the pod as it is now: OpenKruise hangs there for ever.
func replaced(pod *corev1.Pod, st *corev1.ContainerStatus, before kruise.InPlaceUpdateContainerStatus) bool {
	if before.ImageID != st.ImageID {
		return true
	}
	if specImage := imageOf(pod, st.Name); specImage != "" && st.Image == tagged(specImage) && before.ContainerID == "" {
		return true
	}
	if before.ContainerID == "" {
		return false
	}
	seen := pod.Status.ObservedGeneration == 0 || pod.Status.ObservedGeneration >= pod.Generation
	return seen && st.ContainerID != "" && st.ContainerID != before.ContainerID && st.State.Running != nil
}

func resourcesIncomplete(pod *corev1.Pod) string {
	if len(pod.Status.ContainerStatuses) != len(pod.Spec.Containers) {
		return "not all containers have a status"
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		st := statusOf(pod, c.Name)
		if st == nil || st.Resources == nil ||
			!equality.Semantic.DeepEqual(st.Resources.Limits, c.Resources.Limits) ||
			!equality.Semantic.DeepEqual(st.Resources.Requests, c.Resources.Requests) {
			return fmt.Sprintf("container %s does not have its new resources yet", c.Name)
		}
	}
	return ""
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

// tagged adds the tag that an image without one stands for.
func tagged(image string) string {
	if strings.Contains(image, ":") {
		return image
	}
	return image + ":latest"
}
