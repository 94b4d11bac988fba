// SPDX-License-Identifier: Apache-2.0

package faultinjection

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunPods does what a scheduler and kubelets do: pods get a node, run the images of their specs, and are
// ready unless a condition of their readiness gates is not true. It returns how many are ready.
func RunPods(c *Cluster, gates ...corev1.PodConditionType) (ready int) {
	c.t.Helper()
	pods := &corev1.PodList{}
	c.Must(c.Client.List(c.Context(), pods))
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName == "" {
			pod.Spec.NodeName = "n1"
			if nodes := pod.Spec.Affinity; nodes != nil && nodes.NodeAffinity != nil { // of a DaemonSet
				if terms := nodes.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; terms != nil && len(terms.NodeSelectorTerms[0].MatchFields) > 0 {
					pod.Spec.NodeName = terms.NodeSelectorTerms[0].MatchFields[0].Values[0]
				}
			}
			c.Must(c.Client.Update(c.Context(), pod))
		}
		before := pod.DeepCopy()
		pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodRunning, nil
		for _, container := range pod.Spec.Containers {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: container.Name, Image: container.Image, ImageID: "id of " + container.Image, Ready: true,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: pod.CreationTimestamp}},
			})
		}
		if setReady(pod, gates, metav1.NewTime(c.Now)) {
			ready++
		}
		c.PatchStatus(pod, before)
	}
	return ready
}

// setReady writes the condition Ready of a pod, and reports whether it is true.
func setReady(pod *corev1.Pod, gates []corev1.PodConditionType, now metav1.Time) bool {
	is := corev1.ConditionTrue
	for _, gate := range gates {
		if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == gate && c.Status == corev1.ConditionTrue }) {
			is = corev1.ConditionFalse
		}
	}
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	switch {
	case i < 0:
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: is, LastTransitionTime: now})
	case pod.Status.Conditions[i].Status != is:
		pod.Status.Conditions[i].Status, pod.Status.Conditions[i].LastTransitionTime = is, now
	}
	return is == corev1.ConditionTrue
}
