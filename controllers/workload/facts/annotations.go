// SPDX-License-Identifier: Apache-2.0

package facts

import corev1 "k8s.io/api/core/v1"

// VisibleAnnotations are those of an object that are facts: all but the whole object that kubectl apply
// keeps there.
func VisibleAnnotations(of map[string]string) map[string]string {
	out := make(map[string]string, len(of))
	for key, value := range of {
		if key != corev1.LastAppliedConfigAnnotation {
			out[key] = value
		}
	}
	return out
}
