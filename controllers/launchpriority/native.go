// SPDX-License-Identifier: Apache-2.0

package launchpriority

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// MakeNativeSidecars turns containers, which are those of all groups but the last, into init containers that restart, after the existing
// init containers, in the order of their priorities (CLP-03). The annotation keeps the containers as the pod declared them.
func MakeNativeSidecars(pod *corev1.Pod, containers []string, priorities map[string]int64) {
	var names []string
	var early, late []corev1.Container
	for _, c := range pod.Spec.Containers {
		names = append(names, c.Name)
		c.Env = WithoutBarriers(c.Env)
		if !slices.Contains(containers, c.Name) {
			late = append(late, c)
			continue
		}
		always := corev1.ContainerRestartPolicyAlways
		c.RestartPolicy = &always
		early = append(early, c)
	}
	slices.SortStableFunc(early, func(a, b corev1.Container) int {
		return cmp.Compare(priorities[b.Name], priorities[a.Name])
	})
	pod.Spec.InitContainers, pod.Spec.Containers = append(pod.Spec.InitContainers, early...), late
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, kruise.ContainerLaunchPriorityNativeKey, strings.Join(names, ","))
}

// WithoutBarriers returns env without barriers, which a copy of a pod may have.
func WithoutBarriers(env []corev1.EnvVar) []corev1.EnvVar {
	return slices.DeleteFunc(env, func(e corev1.EnvVar) bool { return e.Name == kruise.ContainerLaunchBarrierEnv })
}

// DeclaredPod returns a pod with its containers as they were declared: the pod itself, or a copy in which the containers that
// MakeNativeSidecars moved are restored. Webhooks may see a pod again after they changed it, and users copy pods.
func DeclaredPod(pod *corev1.Pod) *corev1.Pod {
	text, there := pod.Annotations[kruise.ContainerLaunchPriorityNativeKey]
	if !there {
		return pod
	}
	out := pod.DeepCopy()
	delete(out.Annotations, kruise.ContainerLaunchPriorityNativeKey)
	names := strings.Split(text, ",")
	back := map[string]corev1.Container{}
	out.Spec.InitContainers = slices.DeleteFunc(out.Spec.InitContainers, func(c corev1.Container) bool {
		if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways || !slices.Contains(names, c.Name) {
			return false
		}
		c.RestartPolicy = nil
		back[c.Name] = c
		return true
	})
	out.Spec.Containers = inOrder(names, back, out.Spec.Containers)
	return out
}

// inOrder returns containers in the order of the names. A container that is not named stays after the one before it.
func inOrder(names []string, back map[string]corev1.Container, kept []corev1.Container) []corev1.Container {
	out := slices.Clone(kept)
	next := 0 // after the container that was named last
	for _, name := range names {
		if at := slices.IndexFunc(out, func(c corev1.Container) bool { return c.Name == name }); at >= 0 {
			next = at + 1
			continue
		}
		if c, ok := back[name]; ok {
			out = slices.Insert(out, next, c)
			next++
		}
	}
	return out
}
