// SPDX-License-Identifier: Apache-2.0

// Package containerstatus finds out which containers of a pod have ended for good. Such a container
// never becomes ready, so code that waits for a container has to check for its end.
package containerstatus

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// FindStatus returns the status of a container of a pod, nil if it has none.
func FindStatus(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == name {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// IsReady reports whether a container of a pod is ready.
func IsReady(pod *corev1.Pod, name string) bool {
	status := FindStatus(pod, name)
	return status != nil && status.Ready
}

// HasEnded reports whether a container of a pod has ended and the kubelet does not start it again.
func HasEnded(pod *corev1.Pod, name string) bool {
	status := FindStatus(pod, name)
	if status == nil || status.State.Terminated == nil {
		return false
	}
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || !isRestarted(pod, name, status.State.Terminated.ExitCode)
}

// HasSucceeded reports whether a container of a pod has ended for good with exit code 0.
func HasSucceeded(pod *corev1.Pod, name string) bool {
	return HasEnded(pod, name) && FindStatus(pod, name).State.Terminated.ExitCode == 0
}

// HasFailed reports whether a container of a pod has ended for good with another exit code.
func HasFailed(pod *corev1.Pod, name string) bool {
	return HasEnded(pod, name) && FindStatus(pod, name).State.Terminated.ExitCode != 0
}

// isRestarted reports whether the kubelet starts a container again that has ended with an exit code: by a
// restart rule of the container, by its own restart policy, or by that of the pod.
func isRestarted(pod *corev1.Pod, name string, exitCode int32) bool {
	policy := pod.Spec.RestartPolicy
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	if at >= 0 && pod.Spec.Containers[at].RestartPolicy != nil {
		c := &pod.Spec.Containers[at]
		// Rules have no effect without a policy; the API server refuses that. The action of each rule is a restart.
		if slices.ContainsFunc(c.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool { return matchesExitCode(r.ExitCodes, exitCode) }) {
			return true
		}
		policy = corev1.RestartPolicy(*c.RestartPolicy)
	}
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return exitCode != 0
	}
	return true
}

func matchesExitCode(codes *corev1.ContainerRestartRuleOnExitCodes, exitCode int32) bool {
	if codes == nil {
		return false
	}
	switch is := slices.Contains(codes.Values, exitCode); codes.Operator {
	case corev1.ContainerRestartRuleOnExitCodesOpIn:
		return is
	case corev1.ContainerRestartRuleOnExitCodesOpNotIn:
		return !is
	}
	return false
}
