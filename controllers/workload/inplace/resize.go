// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// sizes are the resources of a running container that can change in place.
var sizes = [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// withResource adds a limit or a request that changes to the changed resources of a container. A request
// that the new template leaves to the API server is the limit, and changes with it. Otherwise
// the resize would change the QoS class of the pod.
func withResource(r corev1.ResourceRequirements, c *corev1.Container, list string, name corev1.ResourceName, q resource.Quantity) corev1.ResourceRequirements {
	if list == "requests" {
		r.Requests = setMapKey(r.Requests, name, q)
		return r
	}
	r.Limits = setMapKey(r.Limits, name, q)
	if _, own := c.Resources.Requests[name]; !own {
		r.Requests = setMapKey(r.Requests, name, q)
	}
	return r
}

// defaultedRequests are the requests of a container as the API server defaults them: a limit without a request
// is the request too.
func defaultedRequests(c *corev1.Container) corev1.ResourceList {
	out := c.Resources.Requests.DeepCopy()
	for _, name := range sizes {
		if q, ok := c.Resources.Limits[name]; ok {
			if _, own := out[name]; !own {
				out = setMapKey(out, name, q)
			}
		}
	}
	return out
}

// setResources sets resources of a container; it keeps those that r does not name.
func setResources(c *corev1.Container, r corev1.ResourceRequirements) {
	for name, q := range r.Limits {
		c.Resources.Limits = setMapKey(c.Resources.Limits, name, q)
	}
	for name, q := range r.Requests {
		c.Resources.Requests = setMapKey(c.Resources.Requests, name, q)
	}
}

// RestartsContainers reports whether the update restarts any container. Changes of metadata
// alone do not, and neither do changes of resources unless a resize policy requires it.
func RestartsContainers(pod *corev1.Pod, spec *kruise.UpdateSpec) bool {
	if len(spec.ContainerImages) > 0 || len(spec.ContainerRefMetadata) > 0 {
		return true
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		change := spec.ContainerResources[c.Name]
		for _, name := range sizes {
			_, limit := change.Limits[name]
			_, request := change.Requests[name]
			if (limit || request) && restartsFor(c, name) {
				return true
			}
		}
	}
	return false
}

// restartsFor reports whether the kubelet restarts a container to change a resource of it.
func restartsFor(c *corev1.Container, name corev1.ResourceName) bool {
	for _, p := range c.ResizePolicy {
		if p.ResourceName == name && p.RestartPolicy == corev1.RestartContainer {
			return true
		}
	}
	return false
}

// patchResized writes resources with the resize sub-resource, as Kubernetes 1.33 and
// newer require, before it writes anything else: the revision label must not be
// written before the resources are. If the process ends between the two writes,
// the next round writes the same resources again. If the second write is refused, the
// old resources of the pod are restored.
func (u Updater) patchResized(ctx context.Context, pod, before *corev1.Pod) (*corev1.Pod, error) {
	sized := withResourcesOf(before, pod)
	err := u.patchResize(ctx, sized, before)
	switch {
	case apierrors.IsNotFound(err): // older API servers accept resources with the rest
		return u.patchPod(ctx, pod, before)
	case err != nil:
		return nil, err
	}
	pod.ResourceVersion = sized.ResourceVersion
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Resources = *sized.Spec.Containers[i].Resources.DeepCopy()
	}
	written, err := u.patchPod(ctx, pod, sized)
	switch {
	case err == nil:
		return written, nil
	case !isRefused(err):
		return sized, err
	}
	back := withResourcesOf(sized, before)
	if failed := u.patchResize(ctx, back, sized); failed != nil {
		return sized, errors.Join(err, fmt.Errorf("giving the pod its resources back: %w", failed))
	}
	return back, err
}

func (u Updater) patchResize(ctx context.Context, pod, before *corev1.Pod) error {
	p := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := u.Client.SubResource("resize").Patch(ctx, pod, p); err != nil {
		return fmt.Errorf("resizing pod %s: %w", pod.Name, err)
	}
	return nil
}

// withResourcesOf returns a copy of a pod whose containers have the resources of another pod's containers.
func withResourcesOf(pod, other *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Resources = *other.Spec.Containers[i].Resources.DeepCopy()
	}
	return pod
}
