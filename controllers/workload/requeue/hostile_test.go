// SPDX-License-Identifier: Apache-2.0

package requeue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

func requestOf(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}
}

// Objects that fail and have timers are called at their timers. What they take from the bucket of all retries they do not
// wait for, so without a bound the debt grows for as long as they fail, and any other object that fails once waits for it.
func TestObjectsWithTimersUseUpNoRetriesOfOthers(t *testing.T) {
	broken := errors.New("broken")
	limiter := requeue.NewRateLimiter(5*time.Millisecond, requeue.LongestBackOff, 10, 100)
	r := requeue.NewRetrier(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{RequeueAfter: 5 * time.Second}, broken
	}), limiter, time.Now)
	for range 60 { // five minutes of 200 objects
		for i := range 200 {
			_, _ = r.Reconcile(t.Context(), requestOf(fmt.Sprint(i)))
			r.When(requestOf(fmt.Sprint(i)))
		}
	}
	for n := range 1000 { // so many objects that fail at once are all called again within that time
		if after := r.When(requestOf(fmt.Sprint("without a timer ", n))); after > requeue.LongestBackOff {
			t.Fatalf("one of a thousand objects that fail is called again after %s, want %s at the most", after, requeue.LongestBackOff)
		}
	}
	if after := r.When(requestOf("other")); after > requeue.LongestBackOff {
		t.Errorf("an object that fails for the first time is called again after %s, want %s at the most", after, requeue.LongestBackOff)
	}
}

// A round that asks to be called again at once, as after a conflict, has not come to its end: the timer of the round before
// it still stands if the next round fails.
func TestTimersSurviveConflicts(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var next reconcile.Result
	var err error
	r := requeue.NewRetrier(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return next, err }), nil, func() time.Time { return now })
	req := requestOf("web")
	call := func(after time.Duration, failure error) time.Duration {
		next, err = reconcile.Result{RequeueAfter: after}, failure
		result, failed := r.Reconcile(t.Context(), req)
		if failed == nil {
			return result.RequeueAfter
		}
		return r.When(req)
	}
	call(30*time.Second, nil)
	now = now.Add(call(50*time.Millisecond, nil))
	begin := now
	for range 40 {
		now = now.Add(call(0, errors.New("broken")))
		if since := now.Sub(begin); since >= 29*time.Second {
			if since > 30*time.Second {
				t.Errorf("it is called after %s, want the timer after 29.95s", since)
			}
			return
		}
	}
	t.Error("it is not called")
}
