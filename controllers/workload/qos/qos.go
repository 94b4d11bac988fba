// Package qos tells the quality-of-service class that a pod of a template would
// have, by the rules of Kubernetes: the kubelet refuses to change it in place.
package qos

import (
	corev1 "k8s.io/api/core/v1"
)

// Of is the class of a pod with this spec. Only cpu and memory count. A limit
// without a request stands for both, as in the API server's defaults.
func Of(spec *corev1.PodSpec) corev1.PodQOSClass {
	any, guaranteed := false, true
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			r := &list[i].Resources
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				limit, hasLimit := r.Limits[name]
				request, hasRequest := r.Requests[name]
				if !hasRequest && hasLimit {
					request, hasRequest = limit, true
				}
				if (hasLimit && !limit.IsZero()) || (hasRequest && !request.IsZero()) {
					any = true
				}
				if !hasLimit || limit.IsZero() || !hasRequest || limit.Cmp(request) != 0 {
					guaranteed = false
				}
			}
		}
	}
	switch {
	case !any:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}
