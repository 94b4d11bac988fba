// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// NewRateLimiter makes the rate limiter of a controller. The back-off of each request grows from first to longest. All requests
// together are limited to perSecond after a burst, unless a request would wait longer than longest for that.
func NewRateLimiter(first, longest time.Duration, perSecond, burst int) workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, longest),
		&boundedBucket{Limiter: rate.NewLimiter(rate.Limit(perSecond), burst), longest: longest},
	)
}

// boundedBucket is the token bucket of all calls of a controller. A call that finds it empty reserves a later token, and the next calls wait
// for tokens after that. A Retrier calls requests at their timers, whatever they have reserved. So without a bound, the reservations would grow
// for as long as these requests fail, and a request that has just failed for the first time would wait for them.
type boundedBucket struct {
	*rate.Limiter
	longest time.Duration
}

// When implements workqueue.TypedRateLimiter.
func (b *boundedBucket) When(reconcile.Request) time.Duration {
	call := b.Reserve()
	if wait := call.Delay(); wait <= b.longest {
		return wait
	}
	call.Cancel()
	return b.longest
}

// Forget implements workqueue.TypedRateLimiter.
func (*boundedBucket) Forget(reconcile.Request) {}

// NumRequeues implements workqueue.TypedRateLimiter.
func (*boundedBucket) NumRequeues(reconcile.Request) int { return 0 }
