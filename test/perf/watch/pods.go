// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// pod is what matters of a pod.
type pod struct {
	group       string
	image       string
	available   bool
	terminating bool
}

func factsOf(p *corev1.Pod, label string) pod {
	f := pod{group: p.Labels[label], terminating: p.DeletionTimestamp != nil}
	if len(p.Spec.Containers) > 0 {
		f.image = p.Spec.Containers[0].Image
	}
	f.available = !f.terminating && p.Status.Phase == corev1.PodRunning && ready(p) && runs(p, f.image)
	return f
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// runs says whether the status tells of the image that the spec names, by the
// tag: runtimes write the rest of the name in their own way.
func runs(p *corev1.Pod, image string) bool {
	if len(p.Status.ContainerStatuses) == 0 {
		return false
	}
	return strings.HasSuffix(p.Status.ContainerStatuses[0].Image, image[strings.LastIndexByte(image, ':')+1:])
}

// count adds a pod to the view of its workload, or takes it off.
func (v *View) count(p pod, n int) {
	if p.terminating {
		v.Terminating += n
		return
	}
	v.Pods += n
	i := v.Images[p.image]
	i.Pods += n
	if p.available {
		v.Available += n
		i.Available += n
	}
	v.Images[p.image] = i
}
