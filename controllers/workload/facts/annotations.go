// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// VisibleAnnotations are the annotations of an object that are facts: all except the copy of the object that kubectl apply
// writes.
func VisibleAnnotations(of map[string]string) map[string]string {
	out := make(map[string]string, len(of))
	for key, value := range of {
		if key != corev1.LastAppliedConfigAnnotation {
			out[key] = value
		}
	}
	return out
}

// WorkloadAnnotations are those of a workload that are facts: the visible ones, but for those that the controller of
// Deployments writes.
func WorkloadAnnotations(of map[string]string) map[string]string {
	out := VisibleAnnotations(of)
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, "deployment.kubernetes.io/") })
	return out
}
