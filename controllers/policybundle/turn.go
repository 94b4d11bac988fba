// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"context"
	"slices"
	"sync"
)

// turn admits one bundle at a time to the gate: each check may take all memory that the container has to spare. Bundles of the
// platform come first, and then the namespace whose last turn was longest ago. The zero value is free.
type turn struct {
	mu      sync.Mutex
	taken   bool
	waiting []*waiter
	served  []string // namespaces, the latest last
}

type waiter struct {
	namespace string
	ready     chan struct{}
}

// mostServed bounds how many namespaces are remembered.
const mostServed = 1000

// acquireTurn returns when it is the turn of a bundle of a namespace, or of the platform if that is empty. It calls onWait once if the
// bundle must wait. The caller must call release.
func (t *turn) acquireTurn(ctx context.Context, namespace string, onWait func()) (release func(), err error) {
	t.mu.Lock()
	if !t.taken {
		t.taken = true
		t.mu.Unlock()
		return func() { t.releaseTurn(namespace) }, nil
	}
	w := &waiter{namespace: namespace, ready: make(chan struct{})}
	t.waiting = append(t.waiting, w)
	t.mu.Unlock()
	left := true
	defer func() { // after a panic too
		if left {
			t.leaveQueue(w)
		}
	}()
	onWait()
	select {
	case <-w.ready:
		left = false
		return func() { t.releaseTurn(namespace) }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// leaveQueue removes a waiter that does not wait any longer.
func (t *turn) leaveQueue(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := slices.Index(t.waiting, w); at >= 0 {
		t.waiting = slices.Delete(t.waiting, at, at+1)
	} else {
		t.grantNext() // the waiter was given the turn meanwhile
	}
}

func (t *turn) releaseTurn(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.served = append(slices.DeleteFunc(t.served, func(s string) bool { return s == namespace }), namespace)
	t.served = t.served[max(len(t.served)-mostServed, 0):]
	t.grantNext()
}

// grantNext gives the turn to the waiter that is next.
func (t *turn) grantNext() {
	if t.taken = len(t.waiting) > 0; !t.taken {
		return
	}
	order := func(w *waiter) int {
		if w.namespace == "" {
			return -2 // the platform
		}
		return slices.Index(t.served, w.namespace) // -1 if the namespace had no turn yet
	}
	first := slices.MinFunc(t.waiting, func(a, b *waiter) int { return order(a) - order(b) })
	t.waiting = slices.DeleteFunc(t.waiting, func(w *waiter) bool { return w == first })
	close(first.ready)
}
