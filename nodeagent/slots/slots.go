// SPDX-License-Identifier: Apache-2.0

// Package slots shares the concurrent work of a node among namespaces, so that slow work of one namespace does not block
// the others.
package slots

import (
	"context"
	"fmt"
	"sync"
)

// fewest is the number of slots from which some are reserved for other namespaces. With fewer slots only the
// order is shared.
const fewest = 4

// Slots bounds concurrent work. A namespace gets another slot only while it holds fewer than are free: half of them if it is
// alone, so that there is always room for another namespace. The waiting namespace that holds the fewest is next, and among
// these the one that waits longest.
type Slots struct {
	all int

	mu      sync.Mutex
	free    int
	held    map[string]int
	waiting []*waiter
}

type waiter struct {
	namespace string
	granted   chan struct{}
}

// New makes n free Slots.
func New(n int) *Slots { return &Slots{all: n, free: n, held: map[string]int{}} }

// TryAcquire takes a slot if there is one for a namespace now.
func (s *Slots) TryAcquire(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mayTake(namespace) {
		return false
	}
	s.takeSlot(namespace)
	return true
}

// Acquire waits for a slot.
func (s *Slots) Acquire(ctx context.Context, namespace string) error {
	s.mu.Lock()
	w := &waiter{namespace: namespace, granted: make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.grantWaiting()
	s.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.waiting {
		if other == w {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			return fmt.Errorf("waiting for a slot of namespace %q: %w", namespace, ctx.Err())
		}
	}
	s.freeSlot(namespace) // the slot was granted meanwhile
	return fmt.Errorf("waiting for a slot of namespace %q: %w", namespace, ctx.Err())
}

// Release releases a slot.
func (s *Slots) Release(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeSlot(namespace)
}

func (s *Slots) freeSlot(namespace string) {
	s.free++
	if s.held[namespace]--; s.held[namespace] == 0 {
		delete(s.held, namespace)
	}
	s.grantWaiting()
}

// mayTake reports whether a namespace may have another slot. The caller holds s.mu.
func (s *Slots) mayTake(namespace string) bool {
	held := s.held[namespace]
	return s.free > 0 && (held == 0 || held < s.free || s.all < fewest)
}

func (s *Slots) takeSlot(namespace string) {
	s.free--
	s.held[namespace]++
}

// grantWaiting gives free slots to waiting callers. The caller holds s.mu.
func (s *Slots) grantWaiting() {
	for {
		next := -1
		for i, w := range s.waiting {
			if s.mayTake(w.namespace) && (next < 0 || s.held[w.namespace] < s.held[s.waiting[next].namespace]) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		w := s.waiting[next]
		s.waiting = append(s.waiting[:next], s.waiting[next+1:]...)
		s.takeSlot(w.namespace)
		close(w.granted)
	}
}
