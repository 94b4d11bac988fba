// SPDX-License-Identifier: Apache-2.0

// Package failure reports on an object, by a condition, that its controller failed to reconcile it. The user of the object does not
// see an error that is only logged.
//
// The status comes to rest: while nothing else changes, rounds that all end the same way write it no more. For each way in which a round
// can end, the status that it writes is the one that the next such round wants:
//   - A round that succeeds wants no FailedReconcile and the summary of its state. Both are one write (SetSummary), the last one of the
//     round. If the summary came with a later round, that round would have another status to write, and another chance to fail.
//   - A round that fails before it writes the status, or at that write, leaves FailedReconcile as it is stored. The report adds it if it is
//     missing, or changes it if the error is another one, together with a summary that is not Ready (SetCondition). The report has to compare
//     with what is stored: a round whose write fails does not keep in the object what it wanted to write, except where the report then
//     stores all of that.
//   - A round that writes the status before it ends may fail after that, each time. So such writes keep a FailedReconcile that is
//     there, and package kstatus sets no Ready beside it. Only the end of a round that succeeded removes it.
//
// So a status is written twice in a row only if a round ends in another way than the one before it, or with another error.
package failure

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/message"
)

// ConditionType is the type of the condition, and its reason. The condition is True if the last round ended with an error, and absent
// otherwise.
const ConditionType = condition.FailedReconcile

// TellAgain is how long a controller waits before it repeats an event while its cause lasts: the API server keeps events for an hour.
const TellAgain = 30 * time.Minute

// IsReported reports whether an error is to be reported: it is neither a conflict nor about an object that is gone.
func IsReported(err error) bool {
	return err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err)
}

// RecordFailure records an event of an error on an object whose status has another owner, such as a pod; a nil error records nothing. A round
// that fails is repeated within a minute, so that the event is recorded again for as long as the error lasts.
func RecordFailure(events record.EventRecorder, o client.Object, cause error) {
	if cause != nil {
		events.Event(o, corev1.EventTypeWarning, ConditionType, message.Shorten(cause.Error()))
	}
}

// SetCondition sets the condition in a status, a pointer to a struct with conditions, and has the conditions of package kstatus say that
// the object is not ready. It reports whether a condition changed: nothing changes if the status has the same error. It changes nothing in
// a status without conditions.
func SetCondition(status any, cause error, generation int64, now time.Time) (changed bool) {
	changed = condition.SetCondition(status, condition.Condition{
		Type: ConditionType, Status: metav1.ConditionTrue, Reason: ConditionType, Message: cause.Error(),
	}, generation, metav1.NewTime(now).Rfc3339Copy()).IsAny()
	summed := kstatus.SetUnready(status, kstatus.NewReconciling(ConditionType, cause.Error()), generation, now)
	condition.PutSummaryLast(status)
	return changed || summed
}

// SetSummary removes the condition from a status and sets the conditions of package kstatus, as after a round that succeeded. It reports
// whether a condition changed.
func SetSummary(status any, s kstatus.Summary, generation int64, now time.Time) (changed bool) {
	removed := condition.RemoveConditions(status, ConditionType)
	return kstatus.SetConditions(status, s, generation, now) || removed
}

// Write writes the condition into the status of an object, with the error of a round. It uses the object as it was last read or written. A
// conflict of this write is not returned, since the error starts another round.
func Write[T client.Object](ctx context.Context, c client.Client, o T, status func(T) any, cause error, now time.Time) error {
	changed, ok := o.DeepCopyObject().(T)
	if !ok || !SetCondition(status(changed), cause, o.GetGeneration(), now) {
		return nil
	}
	err := updateStatus(ctx, c, changed)
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// WriteSummary removes the condition from the status of an object, if it is there, in one write with the conditions of package kstatus.
// summarize is called with the object without the condition. WriteSummary uses the object as it was last read or written.
func WriteSummary[T client.Object](ctx context.Context, c client.Client, o T, status func(T) any, summarize func(T) kstatus.Summary, now time.Time) error {
	if !condition.HasCondition(status(o), ConditionType) {
		return nil
	}
	changed, ok := o.DeepCopyObject().(T)
	if !ok {
		return nil
	}
	condition.RemoveConditions(status(changed), ConditionType)
	kstatus.SetConditions(status(changed), summarize(changed), o.GetGeneration(), now)
	return updateStatus(ctx, c, changed)
}

// updateStatus writes a status. A patch would leave out zeros that a schema requires.
func updateStatus(ctx context.Context, c client.Client, changed client.Object) error {
	return client.IgnoreNotFound(c.Status().Update(ctx, changed))
}
