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

// State is all of a pod that decisions about budgets depend on.
func State(pod *corev1.Pod) protection.PodState {
	return protection.PodState{Ready: Ready(pod), Consistent: Inconsistent(pod) == "", NoProtect: NoProtect(pod)}
}

// Available says whether a pod counts as available, as far as the pod says.
func Available(pod *corev1.Pod) bool { return Ready(pod) && Inconsistent(pod) == "" }

// Active says whether a pod is neither finished nor on its way out.
func Active(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// IsRunningAndReady says whether a pod is active, runs and has the condition Ready, as controllers of workloads count it. What labels
// say to budgets is no matter of theirs.
func IsRunningAndReady(pod *corev1.Pod) bool {
	if !Active(pod) || pod.Status.Phase != corev1.PodRunning {
		return false
	}
	c := inplace.Condition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Ready says whether a pod serves, as budgets count it: running and ready, and without a label that calls it unavailable.
func Ready(pod *corev1.Pod) bool {
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

// NoProtect says whether the pod's annotation takes it out of its budget.
func NoProtect(pod *corev1.Pod) bool {
	yes, err := strconv.ParseBool(pod.Annotations[policy.PodNoProtectKey])
	return err == nil && yes
}

// Budget is the name of the budget that the pod says it has, or empty.
func Budget(pod *corev1.Pod) string {
	if name := pod.Annotations[policy.PodRelatedBudgetKey]; name != "" {
		return name
	}
	return pod.Annotations[policy.PodRelatedBudgetLegacyKey]
}
