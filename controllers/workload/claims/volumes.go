// SPDX-License-Identifier: Apache-2.0

// Package claims has the functions that workloads with volume claim templates share.
package claims

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// PodVolumes points a pod's volumes at its own claims, one for each template; name returns the
// name of the claim of a template. It replaces a volume of the pod template that has the name of a claim
// template.
func PodVolumes(volumes []corev1.Volume, templates []corev1.PersistentVolumeClaim, name func(template string) string) []corev1.Volume {
	var out []corev1.Volume
	own := map[string]bool{}
	for i := range templates {
		template := templates[i].Name
		own[template] = true
		out = append(out, corev1.Volume{Name: template, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name(template)},
		}})
	}
	for _, v := range volumes {
		if !own[v.Name] {
			out = append(out, v)
		}
	}
	return out
}

// UnknownMounts are the names of volumes that containers of a pod mount, or use as devices, although
// the pod does not define them: the API server refuses such a pod.
func UnknownMounts(spec *corev1.PodSpec) []string {
	known := map[string]bool{}
	for _, v := range spec.Volumes {
		known[v.Name] = true
	}
	var out []string
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, m := range c.VolumeMounts {
			if !known[m.Name] {
				known[m.Name], out = true, append(out, m.Name)
			}
		}
		for _, d := range c.VolumeDevices {
			if !known[d.Name] {
				known[d.Name], out = true, append(out, d.Name)
			}
		}
	}
	return out
}
