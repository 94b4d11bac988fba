// SPDX-License-Identifier: Apache-2.0

// Package kstatus keeps the conditions Ready, Reconciling and Stalled. The library kstatus of the project cli-utils
// (sigs.k8s.io/cli-utils/pkg/kstatus/status) reads them, and with it Flux, Helm, kpt and others: an object with Stalled has failed, one
// with Reconciling is in progress, and one with neither is current once its status is of the newest generation. Reconciling and Stalled
// exist only while they are True. kubectl wait reads Ready.
package kstatus

import (
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
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

// SetConditions writes a summary into a status, a pointer to a struct with conditions, behind all other conditions. It reports whether a
// condition changed. Beside FailedReconcile no object is ready, whatever the summary says, unless it has ended: package failure removes
// FailedReconcile in the same write as it sets the summary. A generation of 0 leaves observedGeneration out: it is for kinds without such a
// field in the status, of which each change of the spec would cost a write.
func SetConditions(status any, s Summary, generation int64, now time.Time) (changed bool) {
	if failed, is := condition.FindCondition(status, condition.FailedReconcile); is && s.Type == kruise.ConditionReady && !hasEnded(status) {
		s = NewReconciling(condition.FailedReconcile, failed.Message)
	}
	at, ready := metav1.NewTime(now).Rfc3339Copy(), metav1.ConditionFalse
	if s.Type == kruise.ConditionReady {
		ready = metav1.ConditionTrue
	}
	set := func(t string, to metav1.ConditionStatus) {
		next := condition.Condition{Type: t, Status: to, Reason: s.Reason, Message: s.Message}
		changed = condition.SetCondition(status, next, generation, at).IsAny() || changed
	}
	for _, t := range []string{kruise.ConditionReconciling, kruise.ConditionStalled} {
		if t == s.Type {
			set(t, metav1.ConditionTrue)
		} else {
			changed = condition.RemoveConditions(status, t) || changed
		}
	}
	set(kruise.ConditionReady, ready)
	condition.PutSummaryLast(status)
	return changed
}

// SetUnready writes a summary of a failed round into a status, unless the conditions say already, for another reason, that the object is
// not ready, or the object has ended: that its remains cannot be removed does not undo a job. It reports whether a condition changed.
func SetUnready(status any, s Summary, generation int64, now time.Time) (changed bool) {
	ready, is := condition.FindCondition(status, kruise.ConditionReady)
	if hasEnded(status) || is && ready.Status == metav1.ConditionFalse && ready.Reason != s.Reason {
		return false
	}
	return SetConditions(status, s, generation, now)
}

// hasEnded reports whether a status is that of a job that has ended.
func hasEnded(status any) bool {
	v := reflect.ValueOf(status)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return false
	}
	at := v.Elem().FieldByName("CompletionTime")
	return at.IsValid() && at.Kind() == reflect.Pointer && !at.IsNil()
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
