// SPDX-License-Identifier: Apache-2.0

// Package claims has what workloads with volume claim templates share.
package claims

import corev1 "k8s.io/api/core/v1"

// Volumes points a pod's volumes at its own claims, one of each template; name is the
// name of the claim of a template. A volume of the pod template with the name of a claim
// template gives way.
func Volumes(volumes []corev1.Volume, templates []corev1.PersistentVolumeClaim, name func(template string) string) []corev1.Volume {
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
