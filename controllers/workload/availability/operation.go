// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/workload/qos"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// ClassifyChange returns how a change affects a pod: protection.Update or
// protection.Resize, or "" if it does not affect the availability of the pod (PUB-02).
func ClassifyChange(before, after *corev1.Pod) string {
	switch {
	case addsUnavailableLabel(before, after):
		return protection.Update
	case equality.Semantic.DeepEqual(before.Spec, after.Spec):
		return ""
	case isInPlaceResize(before, after):
		return protection.Resize
	}
	return protection.Update
}

// addsUnavailableLabel reports whether a change adds a label that marks the pod as unavailable.
func addsUnavailableLabel(before, after *corev1.Pod) bool {
	for key := range after.Labels {
		if _, had := before.Labels[key]; !had && strings.HasPrefix(key, policy.UnavailablePodLabelPrefix) {
			return true
		}
	}
	return false
}

// isInPlaceResize reports whether nothing changed but resources that the kubelet can change
// while the containers run.
func isInPlaceResize(before, after *corev1.Pod) bool {
	if isStaticPod(before) || qos.ComputeClass(&before.Spec) != qos.ComputeClass(&after.Spec) || !podSmoothly(&before.Spec, &after.Spec) {
		return false
	}
	rest := after.Spec.DeepCopy()
	rest.Resources = before.Spec.Resources.DeepCopy()
	for _, lists := range [][2][]corev1.Container{{before.Spec.Containers, rest.Containers}, {before.Spec.InitContainers, rest.InitContainers}} {
		if len(lists[0]) != len(lists[1]) {
			return false
		}
		for i := range lists[1] {
			was, is := &lists[0][i], &lists[1][i]
			if !canResizeInPlace(was, is) {
				return false
			}
			is.Resources = *was.Resources.DeepCopy()
		}
	}
	return equality.Semantic.DeepEqual(before.Spec, *rest)
}

// podSmoothly reports whether the resources of the pod as a whole can change in place, without a restart
// of a container that shares them.
func podSmoothly(was, is *corev1.PodSpec) bool {
	before, after := corev1.Container{}, corev1.Container{}
	if was.Resources != nil {
		before.Resources = *was.Resources
	}
	if is.Resources != nil {
		after.Resources = *is.Resources
	}
	for _, containers := range [][]corev1.Container{is.Containers, is.InitContainers} {
		for i := range containers {
			after.ResizePolicy = append(after.ResizePolicy, containers[i].ResizePolicy...)
		}
	}
	return canResizeInPlace(&before, &after)
}

// canResizeInPlace reports whether each resource that changed can change in place, without a restart.
func canResizeInPlace(was, is *corev1.Container) bool {
	if !equality.Semantic.DeepEqual(was.Resources.Claims, is.Resources.Claims) {
		return false
	}
	for _, list := range [][2]corev1.ResourceList{{was.Resources.Requests, is.Resources.Requests}, {was.Resources.Limits, is.Resources.Limits}} {
		for _, name := range changedResources(list[0], list[1]) {
			if name != corev1.ResourceCPU && name != corev1.ResourceMemory || restartsOnResize(is, name) {
				return false
			}
		}
	}
	return true
}

func changedResources(was, is corev1.ResourceList) (out []corev1.ResourceName) {
	for name, a := range was {
		if b, ok := is[name]; !ok || a.Cmp(b) != 0 {
			out = append(out, name)
		}
	}
	for name := range is {
		if _, ok := was[name]; !ok {
			out = append(out, name)
		}
	}
	return out
}

func restartsOnResize(c *corev1.Container, name corev1.ResourceName) bool {
	for _, p := range c.ResizePolicy {
		if p.ResourceName == name && p.RestartPolicy != "" && p.RestartPolicy != corev1.NotRequired {
			return true
		}
	}
	return false
}

// isStaticPod reports whether the pod is defined by a file on a node: if it changes, the kubelet
// replaces the pod.
func isStaticPod(pod *corev1.Pod) bool {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	source, ok := pod.Annotations["kubernetes.io/config.source"]
	return ok && source != "api"
}
