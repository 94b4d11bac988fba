// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// pod is what matters of a pod.
type pod struct {
	group       string
	images      []string // of its containers, each once
	available   bool
	terminating bool
}

func factsOf(p *corev1.Pod, label string) pod {
	f := pod{group: p.Labels[label], terminating: p.DeletionTimestamp != nil}
	f.available = !f.terminating && p.Status.Phase == corev1.PodRunning && ready(p)
	for _, c := range p.Spec.Containers {
		if !slices.Contains(f.images, c.Image) {
			f.images = append(f.images, c.Image)
		}
		f.available = f.available && runs(p, c)
	}
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

// runs says whether the status has the image that the spec names for a
// container, by the tag: runtimes write the rest of the name in their own way.
func runs(p *corev1.Pod, c corev1.Container) bool {
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == c.Name && strings.HasSuffix(s.Image, c.Image[strings.LastIndexByte(c.Image, ':')+1:])
	})
}

// count adds a pod to the view of its workload, or takes it off.
func (v *View) count(p pod, n int) {
	if p.terminating {
		v.Terminating += n
		return
	}
	v.Pods += n
	if p.available {
		v.Available += n
	}
	for _, image := range p.images {
		i := v.Images[image]
		i.Pods += n
		if p.available {
			i.Available += n
		}
		v.Images[image] = i
	}
}
