// SPDX-License-Identifier: Apache-2.0

// Package qos computes the quality-of-service class that a pod of a template would
// have, by the rules of Kubernetes: the kubelet refuses to change it in place.
package qos

import (
	corev1 "k8s.io/api/core/v1"
)

// ComputeClass returns the class of a pod with this spec. Only cpu and memory count. A limit
// without a request is the request too, as in the API server's defaults. If
// the pod as a whole has resources, they count instead of its containers' resources.
func ComputeClass(spec *corev1.PodSpec) corev1.PodQOSClass {
	some, guaranteed := false, true
	lists := [][]corev1.Container{spec.Containers, spec.InitContainers}
	if spec.Resources != nil && len(spec.Resources.Limits)+len(spec.Resources.Requests) > 0 {
		lists = [][]corev1.Container{{{Resources: *spec.Resources}}}
	}
	for _, list := range lists {
		for i := range list {
			r := &list[i].Resources
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				limit, hasLimit := r.Limits[name]
				request, hasRequest := r.Requests[name]
				if !hasRequest && hasLimit {
					request, hasRequest = limit, true
				}
				if (hasLimit && !limit.IsZero()) || (hasRequest && !request.IsZero()) {
					some = true
				}
				if !hasLimit || limit.IsZero() || !hasRequest || limit.Cmp(request) != 0 {
					guaranteed = false
				}
			}
		}
	}
	switch {
	case !some:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}
