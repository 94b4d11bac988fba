// SPDX-License-Identifier: Apache-2.0

// Package failure reports on an object, by a condition, that its controller failed to reconcile it. The user of the object does not
// see an error that is only logged.
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
// the object is not ready. It reports whether a condition changed. It changes nothing in a status without conditions.
func SetCondition(status any, cause error, generation int64, now time.Time) (changed bool) {
	changed = condition.SetCondition(status, condition.Condition{
		Type: ConditionType, Status: metav1.ConditionTrue, Reason: ConditionType, Message: cause.Error(),
	}, generation, metav1.NewTime(now).Rfc3339Copy()).IsAny()
	summed := kstatus.SetUnready(status, kstatus.NewReconciling(ConditionType, cause.Error()), generation, now)
	condition.PutSummaryLast(status)
	return changed || summed
}

// ClearCondition removes the condition from a status, and reports whether the status had it. The conditions of package kstatus stay: the
// next round knows what to say.
func ClearCondition(status any) bool { return condition.RemoveConditions(status, ConditionType) }

// Write sets the condition in the status of an object to the error of a round, or removes it if the error is nil. It uses the object
// as it was last read or written. A conflict of this write is not returned if there is an error to report, since that starts another round.
func Write[T client.Object](ctx context.Context, c client.Client, o T, status func(T) any, cause error, now time.Time) error {
	changed, ok := o.DeepCopyObject().(T)
	if !ok {
		return nil
	}
	if cause == nil && !ClearCondition(status(changed)) || cause != nil && !SetCondition(status(changed), cause, o.GetGeneration(), now) {
		return nil
	}
	// A patch would leave out zeros that a schema requires.
	err := c.Status().Update(ctx, changed)
	if cause != nil && apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}
