// SPDX-License-Identifier: Apache-2.0

// Package jobcondition keeps the conditions of jobs: of BroadcastJobs and EphemeralJobs.
package jobcondition

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
)

// Find returns the condition of a type; nil if there is none.
func Find(conditions []kruise.JobCondition, t kruise.JobConditionType) *kruise.JobCondition {
	i := slices.IndexFunc(conditions, func(c kruise.JobCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}

// IsTrue reports whether the condition of a type is True.
func IsTrue(conditions []kruise.JobCondition, t kruise.JobConditionType) bool {
	c := Find(conditions, t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// SetTrue sets a condition to True, and reports whether its reason is new.
func SetTrue(conditions *[]kruise.JobCondition, t kruise.JobConditionType, reason, text string, now metav1.Time) bool {
	return condition.SetCondition(conditions, condition.Condition{Type: string(t), Status: metav1.ConditionTrue, Reason: reason, Message: text}, 0, now).IsNews()
}
