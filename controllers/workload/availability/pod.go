// SPDX-License-Identifier: Apache-2.0

// Package availability tells whether a pod is available, and what would make it
// unavailable: the facts that PodUnavailableBudgets are about (PUB-02, PUB-05, PUB-07).
package availability

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// PodState is all of a pod that decisions about budgets depend on.
func PodState(pod *corev1.Pod) protection.PodState {
	return protection.PodState{Ready: IsReady(pod), Consistent: InconsistentReason(pod) == "", NoProtect: NoProtect(pod)}
}

// IsAvailable reports whether a pod counts as available, as far as the pod says.
func IsAvailable(pod *corev1.Pod) bool { return IsReady(pod) && InconsistentReason(pod) == "" }

// IsActive reports whether a pod is neither finished nor on its way out.
func IsActive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// IsRunningAndReady reports whether a pod is active, runs and has the condition Ready, as controllers of workloads count it. What labels
// say to budgets is no matter of theirs.
func IsRunningAndReady(pod *corev1.Pod) bool {
	if !IsActive(pod) || pod.Status.Phase != corev1.PodRunning {
		return false
	}
	c := inplace.FindCondition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// IsReady reports whether a pod serves, as budgets count it: running and ready, and without a label that calls it unavailable.
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

// NoProtect reports whether the pod's annotation takes it out of its budget.
func NoProtect(pod *corev1.Pod) bool {
	yes, err := strconv.ParseBool(pod.Annotations[policy.PodNoProtectKey])
	return err == nil && yes
}

// BudgetName is the name of the budget that the pod says it has, or empty.
func BudgetName(pod *corev1.Pod) string {
	if name := pod.Annotations[policy.PodRelatedBudgetKey]; name != "" {
		return name
	}
	return pod.Annotations[policy.PodRelatedBudgetLegacyKey]
}
