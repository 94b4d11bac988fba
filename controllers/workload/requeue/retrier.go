// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	firstBackOff = 5 * time.Millisecond
	// LongestBackOff is the longest time between two calls for a request that fails, unless a user sets another one.
	LongestBackOff = time.Minute
	// shortestTimer is the shortest delay to which a timer reduces a longer back-off, so that a timer that is
	// due in each round does not disable the back-off. A round that succeeds and requests a shorter delay, such as one that
	// ended with a conflict, has not completed: the timer of the round before it stays.
	shortestTimer = time.Second
)

// CompleteController completes a builder with a Reconciler whose timers survive errors, see Retrier.
// It replaces WithOptions and Complete of the builder.
func CompleteController(b *builder.Builder, o controller.Options, r reconcile.Reconciler) error {
	o.Reconciler = r
	o = KeepTimers(o)
	r, o.Reconciler = o.Reconciler, nil
	return b.WithOptions(o).Complete(r)
}

// KeepTimers returns the options of a controller with a Retrier as Reconciler and RateLimiter.
func KeepTimers(o controller.Options) controller.Options {
	r := NewRetrier(o.Reconciler, o.RateLimiter, time.Now)
	o.Reconciler, o.RateLimiter = r, r
	return o
}

// Retrier calls a Reconciler, and is the rate limiter of its queue. controller-runtime ignores RequeueAfter
// together with an error, and calls again after a growing back-off. A Retrier remembers RequeueAfter of each
// request, also that of the round before one that failed, and makes the queue call at that time if the
// back-off is longer. It returns errors unchanged, so that they are counted and logged. It also counts the rounds in a row that
// lost a race, see LoseRace.
type Retrier struct {
	reconcile.Reconciler
	backOff workqueue.TypedRateLimiter[reconcile.Request]
	now     func() time.Time

	mu     sync.Mutex
	timers map[reconcile.Request]time.Time
	races  map[reconcile.Request]int
}

// NewRetrier makes a Retrier. Its back-off grows from 5 ms to LongestBackOff if backOff is nil.
func NewRetrier(r reconcile.Reconciler, backOff workqueue.TypedRateLimiter[reconcile.Request], now func() time.Time) *Retrier {
	if backOff == nil {
		backOff = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackOff, LongestBackOff)
	}
	return &Retrier{Reconciler: r, backOff: backOff, now: now, timers: map[reconcile.Request]time.Time{}, races: map[reconcile.Request]int{}}
}

// Reconcile calls the Reconciler. RequeueAfter is 0 together with an error.
func (r *Retrier) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	r.dropDueTimer(req)
	ctx, lost := r.beginRaces(ctx, req)
	result, err := r.Reconciler.Reconcile(ctx, req)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endRaces(req, lost)
	if err == nil && 0 < result.RequeueAfter && result.RequeueAfter < shortestTimer {
		return result, nil
	}
	if err == nil {
		delete(r.timers, req)
	}
	if result.RequeueAfter > 0 {
		at := r.now().Add(result.RequeueAfter)
		if before, ok := r.timers[req]; !ok || at.Before(before) {
			r.timers[req] = at
		}
	}
	if err != nil {
		result.RequeueAfter = 0
	}
	return result, err
}

// dropDueTimer forgets the timer of a request if it is due, since the call that begins serves it.
func (r *Retrier) dropDueTimer(req reconcile.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.timers[req]; ok && !at.After(r.now()) {
		delete(r.timers, req)
	}
}

// When implements workqueue.TypedRateLimiter.
func (r *Retrier) When(req reconcile.Request) time.Duration {
	after := r.backOff.When(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.timers[req]; ok {
		return min(after, max(at.Sub(r.now()), shortestTimer))
	}
	return after
}

// Forget implements workqueue.TypedRateLimiter.
func (r *Retrier) Forget(req reconcile.Request) { r.backOff.Forget(req) }

// NumRequeues implements workqueue.TypedRateLimiter.
func (r *Retrier) NumRequeues(req reconcile.Request) int { return r.backOff.NumRequeues(req) }
