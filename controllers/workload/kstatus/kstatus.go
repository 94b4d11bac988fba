// SPDX-License-Identifier: Apache-2.0

// Package kstatus keeps the conditions Ready, Reconciling and Stalled. The library kstatus of the project cli-utils
// (sigs.k8s.io/cli-utils/pkg/kstatus/status) reads them, and with it Flux, Helm, kpt and others: an object with Stalled has failed, one
// with Reconciling is in progress, and one with neither is current once its status is of the newest generation. Reconciling and Stalled
// exist only while they are True. kubectl wait reads Ready.
package kstatus

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
)

// Summary is what the conditions say.
type Summary struct {
	// Type is kruise.ConditionReady, ConditionReconciling or ConditionStalled: the one of them that is True.
	Type            string
	Reason, Message string
}

// NewReady is the summary of an object that is what its spec says.
func NewReady(reason, message string) Summary {
	return Summary{kruise.ConditionReady, reason, message}
}

// NewReconciling is the summary of an object that may become what its spec says without a change.
func NewReconciling(reason, message string) Summary {
	return Summary{kruise.ConditionReconciling, reason, message}
}

// NewStalled is the summary of an object that does not become what its spec says without a change.
func NewStalled(reason, message string) Summary {
	return Summary{kruise.ConditionStalled, reason, message}
}

// IsOwned reports whether this package writes the conditions of a type.
func IsOwned(conditionType string) bool {
	return conditionType == kruise.ConditionReady || conditionType == kruise.ConditionReconciling || conditionType == kruise.ConditionStalled
}

// JudgeRollout sums up the rollout of a workload.
//   - It is ready when all pods are available and as many as the strategy asks for are updated. Pods that the partition keeps
//     do not count, nor old pods of a strategy that lets pods keep what they have.
//   - It is stalled when its progress deadline is exceeded, unless it waits for a hold to end.
//   - Otherwise it is reconciling. A failure or a hold is the reason, since both can end without a change of the object.
func JudgeRollout(v kinds.View) Summary {
	trouble := v.FirstTrouble()
	switch {
	case v.IsSettled():
		return NewReady(kruise.PodsAvailableReason, v.CompletionText())
	case v.Deadline != "" && !v.KeepsOld && !v.IsHeld():
		return NewStalled(kruise.CloneSetProgressDeadlineExceededReason, v.Deadline)
	case trouble != nil:
		return NewReconciling(trouble.Type, trouble.Message)
	case v.Done >= v.Target && v.Available < v.Wanted:
		return NewReconciling(kruise.ProgressingReason, fmt.Sprintf("%s; %d of %d pods are available", v.ProgressText(), v.Available, v.Wanted))
	}
	return NewReconciling(kruise.ProgressingReason, v.ProgressText())
}

// SetConditions writes a summary into a status, a pointer to a struct with conditions, behind all other conditions.
func SetConditions(status any, s Summary, generation int64, now time.Time) {
	at, ready := metav1.NewTime(now).Rfc3339Copy(), metav1.ConditionFalse
	if s.Type == kruise.ConditionReady {
		ready = metav1.ConditionTrue
	}
	for _, t := range []string{kruise.ConditionReconciling, kruise.ConditionStalled} {
		if t != s.Type {
			condition.RemoveConditions(status, t)
			continue
		}
		condition.SetCondition(status, condition.Condition{Type: t, Status: metav1.ConditionTrue, Reason: s.Reason, Message: s.Message}, generation, at)
	}
	condition.SetCondition(status, condition.Condition{Type: kruise.ConditionReady, Status: ready, Reason: s.Reason, Message: s.Message}, generation, at)
	condition.PutSummaryLast(status)
}

// FilterConditions returns the conditions of an unstructured status without those that this package writes. It changes the list.
func FilterConditions(conditions []any) []any {
	return slices.DeleteFunc(conditions, func(item any) bool {
		c, _ := item.(map[string]any)
		conditionType, _ := c["type"].(string)
		return IsOwned(conditionType)
	})
}

// RemoveConditions removes the conditions that SetConditions writes from a status.
func RemoveConditions(status any) {
	condition.RemoveConditions(status, kruise.ConditionReady, kruise.ConditionReconciling, kruise.ConditionStalled)
}
