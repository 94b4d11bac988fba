// SPDX-License-Identifier: Apache-2.0

// Package coalesce serves many callers that want to write one object. It serves all that wait at the same time by one read and
// one write, since they would otherwise conflict with each other. No lock is
// held while a caller waits, and a caller may leave at any time.
package coalesce

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/regatta-sh/regatta/engine/recovery"
)

// Queue has a queue for each key. One goroutine answers all callers that wait in a queue, and ends
// when none waits.
type Queue[K comparable, T any] struct {
	// Most is how many callers are answered at once.
	Most int
	// Patience is the deadline of one call of Answer. Callers have deadlines of their own.
	Patience time.Duration
	// Every is the minimum time between the starts of two answers in one queue, so
	// that more callers at a time do not lead to more answers. The first callers are answered at once.
	Every time.Duration
	// Answer answers a batch.
	Answer func(ctx context.Context, key K, batch []T)
	// Fail gives an error to the callers of a batch after Answer panicked.
	Fail func(batch []T, err error)

	mu     sync.Mutex
	queues map[K]*pendingCallers[T]
}

type pendingCallers[T any] struct{ waiting []T }

// EnqueueCaller puts a caller at the end of a queue.
func (c *Queue[K, T]) EnqueueCaller(key K, caller T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queues == nil {
		c.queues = map[K]*pendingCallers[T]{}
	}
	q := c.queues[key]
	if q == nil {
		q = &pendingCallers[T]{}
		c.queues[key] = q
		recovery.Go("coalesce", func() { c.serveCallers(key, q) }, nil)
	}
	q.waiting = append(q.waiting, caller)
}

// KeyCount is how many queues exist: one for each key that callers wait for.
func (c *Queue[K, T]) KeyCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queues)
}

func (c *Queue[K, T]) serveCallers(key K, q *pendingCallers[T]) {
	for {
		c.mu.Lock()
		n := min(len(q.waiting), c.Most)
		batch := q.waiting[:n:n]
		q.waiting = q.waiting[n:]
		if n == 0 {
			delete(c.queues, key)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		next := time.Now().Add(c.Every)
		ctx, cancel := context.WithTimeout(context.Background(), c.Patience)
		callers := slices.Clone(batch) // Answer may change the batch
		if err := recovery.Call("coalesce", func() error { c.Answer(ctx, key, batch); return nil }); err != nil && c.Fail != nil {
			_ = recovery.Call("coalesce", func() error { c.Fail(callers, err); return nil })
		}
		cancel()
		if c.Every > 0 {
			time.Sleep(time.Until(next))
		}
	}
}

// SleepJitter waits for a random time, so that writers that conflicted do not conflict again.
func SleepJitter(ctx context.Context, try int) {
	timer := time.NewTimer(rand.N(time.Duration(try) * 4 * time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
