// SPDX-License-Identifier: Apache-2.0

// Package availability computes whether a pod is available, and which changes make it
// unavailable: the facts for PodUnavailableBudgets (PUB-02, PUB-05, PUB-07).
package availability

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// PodState returns everything about a pod that decisions about budgets depend on.
func PodState(pod *corev1.Pod) protection.PodState {
	return protection.PodState{Ready: IsReady(pod), Consistent: InconsistentReason(pod) == "", NoProtect: NoProtect(pod)}
}

// IsAvailable reports whether a pod counts as available, by the pod alone.
func IsAvailable(pod *corev1.Pod) bool { return IsReady(pod) && InconsistentReason(pod) == "" }

// IsActive reports whether a pod is neither finished nor terminating.
func IsActive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// IsRunningAndReady reports whether a pod is active, runs and has the condition Ready, as controllers of workloads count it. It ignores
// the labels that budgets read.
func IsRunningAndReady(pod *corev1.Pod) bool {
	if !IsActive(pod) || pod.Status.Phase != corev1.PodRunning {
		return false
	}
	return HasReadyCondition(pod)
}

// HasReadyCondition reports whether the condition Ready of a pod is True, whatever its phase.
func HasReadyCondition(pod *corev1.Pod) bool {
	c := inplace.FindCondition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// IsReady reports whether a pod is ready as budgets count it: running and ready, and without a label that marks it as unavailable.
func IsReady(pod *corev1.Pod) bool {
	if !IsRunningAndReady(pod) {
		return false
	}
	for key := range pod.Labels {
		if strings.HasPrefix(key, policy.UnavailablePodLabelPrefix) {
			return false
		}
	}
	return true
}

// NoProtect reports whether an annotation excludes the pod from the protection of its budget.
func NoProtect(pod *corev1.Pod) bool {
	yes, err := strconv.ParseBool(pod.Annotations[policy.PodNoProtectKey])
	return err == nil && yes
}

// BudgetName is the name of the budget in the annotation of the pod, or empty.
func BudgetName(pod *corev1.Pod) string {
	if name := pod.Annotations[policy.PodRelatedBudgetKey]; name != "" {
		return name
	}
	return pod.Annotations[policy.PodRelatedBudgetLegacyKey]
}
