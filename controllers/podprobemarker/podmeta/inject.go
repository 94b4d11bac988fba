// SPDX-License-Identifier: Apache-2.0

package podmeta

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
)

// InjectedProbes returns what is added to a serverless pod when it is created (PPM-06): the probes
// that it runs itself, and the names of their markers.
func InjectedProbes(markers []Marker, pod *corev1.Pod) (probes []v1alpha1.PodContainerProbe, names []string) {
	containers, types, seen := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range pod.Spec.Containers {
		containers[pod.Spec.Containers[i].Name] = true
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers[c.Name] = true
		}
	}
	for _, m := range markers {
		took := false
		for i := range m.Spec.Probes {
			probe := m.Spec.Probes[i].DeepCopy()
			at := probe.ContainerName + "/" + probe.Name
			if probe.PodConditionType == "" || !containers[probe.ContainerName] || types[probe.PodConditionType] || seen[at] {
				continue
			}
			types[probe.PodConditionType], seen[at], took = true, true, true
			probe.MarkerPolicy = nil
			probes = append(probes, *probe)
		}
		if took {
			names = append(names, m.Name)
		}
	}
	return probes, names
}
