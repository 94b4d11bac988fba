// SPDX-License-Identifier: Apache-2.0

// Package kstatus keeps the conditions Ready, Reconciling and Stalled. The library kstatus of the project cli-utils
// (sigs.k8s.io/cli-utils/pkg/kstatus/status) reads them, and with it Flux, Helm, kpt and others: an object with Stalled has failed, one
// with Reconciling is in progress, and one with neither is current once its status is of the newest generation. Reconciling and Stalled
// exist only while they are True. kubectl wait reads Ready.
package kstatus

import (
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

// IsOwned reports whether this package writes the conditions of a type.
func IsOwned(conditionType string) bool {
	return conditionType == kruise.ConditionReady || conditionType == kruise.ConditionReconciling || conditionType == kruise.ConditionStalled
}

// JudgeRollout sums up the rollout of a workload.
//   - It is ready when all pods are available and as many as the strategy asks for are updated. Pods that the partition keeps
//     do not count, nor old pods of a strategy that lets pods keep what they have.
//   - It is stalled when its progress deadline is exceeded.
//   - Otherwise it is reconciling. A failure or a hold is the reason, since both can end without a change of the object.
func JudgeRollout(v kinds.View) Summary {
	trouble := v.FirstTrouble()
	switch {
	case v.IsSettled():
		return Summary{kruise.ConditionReady, kruise.PodsAvailableReason, v.CompletionText()}
	case v.Deadline != "":
		return Summary{kruise.ConditionStalled, kruise.CloneSetProgressDeadlineExceededReason, v.Deadline}
	case trouble != nil:
		return Summary{kruise.ConditionReconciling, trouble.Type, trouble.Message}
	}
	return Summary{kruise.ConditionReconciling, kruise.ProgressingReason, v.ProgressText()}
}

// SetConditions writes a summary into a status, a pointer to a struct with conditions, behind all other conditions.
func SetConditions(status any, s Summary, generation int64, now time.Time) {
	at, ready := metav1.NewTime(now).Rfc3339Copy(), metav1.ConditionFalse
	if s.Type == kruise.ConditionReady {
		ready = metav1.ConditionTrue
	}
	for _, t := range []string{kruise.ConditionReconciling, kruise.ConditionStalled} {
		if t != s.Type {
			condition.Remove(status, t)
			continue
		}
		condition.Set(status, condition.Condition{Type: t, Status: metav1.ConditionTrue, Reason: s.Reason, Message: s.Message}, generation, at)
		condition.MoveLast(status, t)
	}
	condition.Set(status, condition.Condition{Type: kruise.ConditionReady, Status: ready, Reason: s.Reason, Message: s.Message}, generation, at)
	condition.MoveLast(status, kruise.ConditionReady)
}

// RemoveConditions removes the conditions that SetConditions writes from a status.
func RemoveConditions(status any) {
	condition.Remove(status, kruise.ConditionReady, kruise.ConditionReconciling, kruise.ConditionStalled)
}
