// SPDX-License-Identifier: Apache-2.0

package requeue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// An API server that always answers 409 is no race: the sixth in a row is an error. One round that loses none ends the row.
func TestRacesThatAreLostInARowAreAFailure(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web", errors.New("a webhook says so"))
	loses := true
	r := requeue.NewRetrier(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		if !loses {
			return reconcile.Result{}, nil
		}
		again, ok := requeue.LoseRace(ctx, conflict)
		if other, still := requeue.LoseRace(ctx, conflict); other != again || still != ok {
			t.Error("one round counts twice")
		}
		if !ok {
			return reconcile.Result{}, conflict
		}
		return reconcile.Result{RequeueAfter: again}, nil
	}), nil, time.Now)
	lose := func(name string, want ...time.Duration) {
		t.Helper()
		for _, after := range want {
			result, err := r.Reconcile(t.Context(), requestOf(name))
			if result.RequeueAfter != after || (err != nil) != (after == 0) {
				t.Errorf("%s is repeated after %s, want %s: %v", name, result.RequeueAfter, after, err)
			}
		}
	}
	row := []time.Duration{50e6, 100e6, 200e6, 400e6, 800e6, 0, 0}
	lose("web", row...)
	lose("other", row...)
	loses = false
	if _, err := r.Reconcile(t.Context(), requestOf("web")); err != nil {
		t.Fatal(err)
	}
	loses = true
	lose("web", row...)
	lose("other", 0)
	if again, ok := requeue.LoseRace(t.Context(), conflict); !ok || again != 50*time.Millisecond {
		t.Errorf("outside a Retrier it is repeated after %s", again)
	}
}
