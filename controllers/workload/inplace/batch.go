// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/launchpriority"
)

// pendingWork is what an update still has to do, by container.
type pendingWork struct {
	images    map[string]string
	metadata  map[string]kruise.ContainerRefMetadata
	resources map[string]corev1.ResourceRequirements
}

func (w pendingWork) hasContainer(name string) bool {
	_, image := w.images[name]
	_, meta := w.metadata[name]
	_, res := w.resources[name]
	return image || meta || res
}

// retainContainers drops the work of all other containers. Work for a container that the
// pod does not have would never be done, and the update would wait for it indefinitely.
func (w pendingWork) retainContainers(names []string) {
	others := func(name string) bool { return !slices.Contains(names, name) }
	maps.DeleteFunc(w.images, func(k string, _ string) bool { return others(k) })
	maps.DeleteFunc(w.metadata, func(k string, _ kruise.ContainerRefMetadata) bool { return others(k) })
	maps.DeleteFunc(w.resources, func(k string, _ corev1.ResourceRequirements) bool { return others(k) })
}

// splitBatch splits the containers to change into those changed now and those that
// wait until the first ones are ready. Both are in the pod's order.
func splitBatch(pod *corev1.Pod, w pendingWork) (now, later []string) {
	highest, found := int64(0), false
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if p, ok := launchpriority.PriorityOf(c); ok && w.hasContainer(c.Name) && (!found || p > highest) {
			highest, found = p, true
		}
	}
	chosen := map[string]bool{}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if p, ok := launchpriority.PriorityOf(c); w.hasContainer(c.Name) && (!ok || p == highest) {
			chosen[c.Name] = true
		}
	}
	// A key is written once, so all containers that read it change together.
	for grew := true; grew; {
		grew = false
		for name, m := range w.metadata {
			mine := Metadata(m)
			for other, o := range w.metadata {
				theirs := Metadata(o)
				if !chosen[name] && chosen[other] && mine.sharesKey(&theirs) {
					chosen[name], grew = true, true
				}
			}
		}
	}
	for i := range pod.Spec.Containers {
		switch name := pod.Spec.Containers[i].Name; {
		case chosen[name]:
			now = append(now, name)
		case w.hasContainer(name):
			later = append(later, name)
		}
	}
	slices.Sort(now)
	return now, later
}
