// SPDX-License-Identifier: Apache-2.0

package nodefit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

// requestsOf returns what one pod of a template requests of a node. A resource with only a
// limit is requested up to the limit, as the API server defaults it.
func requestsOf(spec *corev1.PodSpec) corev1.ResourceList {
	spec = spec.DeepCopy()
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			for name, limit := range r.Limits {
				if _, set := r.Requests[name]; !set {
					if r.Requests == nil {
						r.Requests = corev1.ResourceList{}
					}
					r.Requests[name] = limit
				}
			}
		}
	}
	requests := helpers.PodRequests(&corev1.Pod{Spec: *spec}, helpers.PodResourcesOptions{})
	requests[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return requests
}

// insufficientResources names the resources of which a node has less allocatable than one pod requests.
func (r *Requirements) insufficientResources(node *corev1.Node) []string {
	var out []string
	for name, want := range r.requests {
		if have := node.Status.Allocatable[name]; want.Sign() > 0 && have.Cmp(want) < 0 {
			out = append(out, string(name))
		}
	}
	slices.Sort(out)
	return out
}
