// SPDX-License-Identifier: Apache-2.0

// Package launchpriority opens the barriers that prevent containers of a pod from starting before others (CLP-02). A barrier is a key
// of a ConfigMap that the env of the containers reads: kubelets start no container whose env they cannot read.
package launchpriority

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/containerstatus"
)

const (
	suffix = "-barrier"
	prefix = "p_"
)

// BarrierEnv is the environment variable that holds back a container with a priority.
func BarrierEnv(pod string, priority int64) corev1.EnvVar {
	return corev1.EnvVar{Name: kruise.ContainerLaunchBarrierEnv, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: pod + suffix}, Key: barrierKey(priority),
	}}}
}

func barrierKey(priority int64) string { return prefix + strconv.FormatInt(priority, 10) }

// PriorityOf is the priority of a container's barrier, if it has one.
func PriorityOf(c *corev1.Container) (int64, bool) {
	for _, env := range c.Env {
		if env.Name != kruise.ContainerLaunchBarrierEnv || env.ValueFrom == nil || env.ValueFrom.ConfigMapKeyRef == nil {
			continue
		}
		digits, ok := strings.CutPrefix(env.ValueFrom.ConfigMapKeyRef.Key, prefix)
		priority, err := strconv.ParseInt(digits, 10, 64)
		return priority, ok && err == nil
	}
	return 0, false
}

// HasPendingBarriers reports whether barriers of a pod are still to be opened.
func HasPendingBarriers(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Annotations[kruise.ContainerLaunchPriorityCompletedKey] == "true" ||
		pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.ContainersReady && c.Status == corev1.ConditionTrue {
			return false
		}
	}
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { _, ok := PriorityOf(&c); return ok })
}

// step is what is to be done for a pod now.
type step struct {
	// open is the key to be added, empty if none.
	open string
	// done is true when no barrier will be opened after that.
	done bool
	// failed is a container that has failed for good, so that containers of lower priorities never start; empty if
	// none.
	failed string
}

// nextStep chooses the barrier of the highest priority that has a container that is not ready, so that a lower barrier opens only
// when all containers of higher priorities are ready. A container that has ended for good with success counts as ready. Nothing
// closes a barrier again.
func nextStep(pod *corev1.Pod, opened map[string]string) step {
	var left []int64
	failed := map[int64]string{}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		priority, ok := PriorityOf(c)
		if !ok || containerstatus.IsReady(pod, c.Name) || containerstatus.HasSucceeded(pod, c.Name) {
			continue
		}
		left = append(left, priority)
		if failed[priority] == "" && containerstatus.HasFailed(pod, c.Name) {
			failed[priority] = c.Name
		}
	}
	if len(left) == 0 {
		return step{done: true}
	}
	lowest, highest := slices.Min(left), slices.Max(left)
	if _, ok := opened[barrierKey(lowest)]; ok {
		return step{done: true}
	}
	s := step{done: lowest == highest}
	if !s.done {
		s.failed = failed[highest]
	}
	if _, ok := opened[barrierKey(highest)]; !ok {
		s.open = barrierKey(highest)
	}
	return s
}

// containersBehind lists, in the order of the pod, the containers that do not start since another one has failed: those of lower
// priorities whose barriers are not open, and that were not started before another client deleted the ConfigMap of the barriers.
func containersBehind(pod *corev1.Pod, failed string, opened map[string]string) (names []string) {
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == failed })
	if at < 0 {
		return nil
	}
	most, _ := PriorityOf(&pod.Spec.Containers[at])
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		priority, ok := PriorityOf(c)
		status := containerstatus.FindStatus(pod, c.Name)
		if ok && priority < most && opened[barrierKey(priority)] == "" && (status == nil || status.State.Running == nil && status.State.Terminated == nil) {
			names = append(names, c.Name)
		}
	}
	return names
}

// hasStopped reports whether no container of a pod, other than the blocked ones, runs or will be started.
func hasStopped(pod *corev1.Pod, blocked []string) bool {
	return !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return !slices.Contains(blocked, c.Name) && !containerstatus.HasEnded(pod, c.Name)
	})
}
