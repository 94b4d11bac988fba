// SPDX-License-Identifier: Apache-2.0

package advancedcronjob

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
)

// refusing has the controller write through a client that refuses some writes.
func (w *world) refusing(funcs interceptor.Funcs) {
	w.r = New(reconcile.Deps{Client: interceptor.NewClient(w.api, funcs), Live: w.api, Events: w.events, Engine: w.engine, Now: func() time.Time { return w.now }})
}

// A job that cannot be deleted, as one that is protected, keeps no run from its start, and no other old job.
func TestAnOldJobThatCannotBeDeletedKeepsNoRunWaiting(t *testing.T) {
	w := newWorld(t, nil)
	for _, clock := range []string{"03:10", "03:20", "03:30", "03:40", "03:50"} {
		w.until(clock + ":00")
		w.end(batchv1.JobComplete, clock)
	}
	w.runs("03:20 03:30 03:40 03:50") // the last of them has just ended
	protected := ""
	w.refusing(interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		if protected == "" || o.GetName() == protected {
			protected = o.GetName()
			return errors.New("it is protected")
		}
		return c.Delete(ctx, o, opts...)
	}})
	w.now = at(t, "2026-03-01T04:00:00Z")
	res, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key})
	if err == nil || res.RequeueAfter != 10*time.Minute {
		t.Errorf("it is looked at again after %s, want that of the next run beside the error: %v", res.RequeueAfter, err)
	}
	w.runs("03:20 03:30 03:40 03:50 04:00")
	w.end(batchv1.JobComplete, "04:00")
	_, _ = w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key})
	w.runs("03:20 03:40 03:50 04:00")
}

// A run that cannot start is tried again, and the time of the next one stands.
func TestARunThatCannotStartKeepsTheTimeOfTheNextOne(t *testing.T) {
	w := newWorld(t, nil)
	w.until("03:04:00")
	w.refusing(interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return errors.New("quota exceeded")
	}})
	w.now = at(t, "2026-03-01T03:10:00Z")
	if res, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key}); err == nil || res.RequeueAfter != 10*time.Minute {
		t.Errorf("it is looked at again after %s, want that of the next run beside the error: %v", res.RequeueAfter, err)
	}
}

// While rounds fail the condition stays as it is, and it goes once one does not, also while the schedule is paused.
func TestTheConditionOfAFailureDoesNotFlap(t *testing.T) {
	w := newWorld(t, func(job *kruise.AdvancedCronJob) {
		job.Spec.SuccessfulJobsHistoryLimit, job.Spec.FailedJobsHistoryLimit = ptr.To[int32](0), ptr.To[int32](0)
	})
	w.until("03:10:00")
	w.end(batchv1.JobComplete, "03:10")
	w.until("03:20:00")
	w.end(batchv1.JobFailed, "03:20")
	w.edit(func(job *kruise.AdvancedCronJob) { job.Spec.Paused = ptr.To(true) })
	protected, writes := true, 0
	w.refusing(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if protected {
				return fmt.Errorf("%s is protected", o.GetName())
			}
			return c.Delete(ctx, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			writes++
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
	for i := range 20 {
		_, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key})
		if c := meta.FindStatusCondition(w.get().Status.Conditions, failure.ConditionType); err == nil || c == nil || !strings.Contains(c.Message, "is protected") {
			t.Errorf("after round %d the condition is %+v: %v", i, c, err)
		}
		if i == 0 {
			writes = 0
		}
	}
	if writes > 0 {
		t.Errorf("the status is written %d times in rounds that fail as those before", writes)
	}
	protected = false
	w.reconcile()
	if c := meta.FindStatusCondition(w.get().Status.Conditions, failure.ConditionType); c != nil {
		t.Errorf("at the end the condition is %+v", c)
	}
}
