// SPDX-License-Identifier: Apache-2.0

package faultinjection

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Background is a controller that works in the background too, and has an event when that is done. So that each run makes the same
// calls, the work goes on between two rounds, and has ended before the next one.
type Background struct {
	Environment
	// Reconciler is the controller.
	Reconciler reconcile.Reconciler
	// News are the events of its work.
	News <-chan event.GenericEvent
	// IsBusy reports whether work goes on.
	IsBusy func() bool

	round sync.RWMutex // held by a round, and shared by the work

	mu  sync.Mutex
	now time.Time // of the round
}

// Reconcile makes a round, and waits for the work that it has begun. It waits without end for a controller that is busy and sends no News.
func (b *Background) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b.round.Lock()
	b.setNow(b.Clock())
	result, err := b.Reconciler.Reconcile(ctx, req)
	busy := b.IsBusy()
	b.round.Unlock()
	if busy {
		<-b.News
		b.Notify()
	}
	for b.IsBusy() {
		select {
		case <-b.News:
		case <-time.After(time.Millisecond):
		}
	}
	return result, err
}

// WaitForRound returns when no round goes on.
func (b *Background) WaitForRound() {
	b.round.RLock()
	defer b.round.RUnlock()
}

// Now is the time of the round, which work may ask for after it.
func (b *Background) Now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *Background) setNow(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = now
}
