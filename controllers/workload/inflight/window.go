// SPDX-License-Identifier: Apache-2.0

// Package inflight bounds the writes that all workloads of a process have under way at the
// API server. The bound grows while answers are as fast as those of an idle server, which may be
// near or far. It shrinks when answers are late or the server refuses requests. Workloads take
// turns to write.
package inflight

import (
	"sync"
	"time"
)

// Bounds of a Window, in writes under way.
const (
	// least is the bound below which late answers do not lower it: enough for a server that is near.
	least = 16
	// first is the bound when a process starts.
	first = 32
	// most bounds the goroutines and connections of the process.
	most = 256
)

// Window bounds the writes of a process. Its methods may be called at the same time.
type Window struct {
	mu       sync.Mutex
	now      func() time.Time
	limit    int
	fixed    bool
	inFlight int
	// turns are the holders that wait, each once, in the order of their turns.
	turns []*Share
	// short is true if a write had to wait since the bound was last checked: a bound that is not
	// reached is not raised.
	short bool

	bases         map[string]*base
	answers, late int
	typical       time.Duration
	refused       time.Time
}

// New makes a Window. now is time.Now except in tests.
func New(now func() time.Time) *Window {
	return &Window{now: now, limit: first, bases: map[string]*base{}}
}

// NewFixed makes a Window whose bound does not change.
func NewFixed(limit int) *Window {
	return &Window{now: time.Now, limit: limit, fixed: true, bases: map[string]*base{}}
}

// CurrentLimit is how many writes may be under way now.
func (w *Window) CurrentLimit() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.limit
}

// MaxLimit is the most that CurrentLimit returns.
func (w *Window) MaxLimit() int {
	if w.fixed {
		return w.limit
	}
	return most
}

// TypicalLatency is the recent average latency of answers, 0 before the first.
func (w *Window) TypicalLatency() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.typical
}

// Share is one of the holders that share a Window, such as a round of a workload.
type Share struct {
	w       *Window
	waiting []chan struct{}
}

// NewShare makes a Share that takes turns with the others.
func (w *Window) NewShare() *Share { return &Share{w: w} }

// RunInTurn does an act when it is the holder's turn and returns its error. The act must not call RunInTurn:
// if as many acts as may be under way waited for a turn, none would end.
func (h *Share) RunInTurn(act func() error) error {
	if turn := h.acquireSlot(); turn != nil {
		<-turn
	}
	defer h.w.releaseSlot()
	return act()
}

// acquireSlot takes a slot, or returns a channel that is closed when one has been taken.
func (h *Share) acquireSlot() <-chan struct{} {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inFlight < w.limit && len(w.turns) == 0 {
		w.inFlight++
		return nil
	}
	w.short = true
	turn := make(chan struct{})
	if len(h.waiting) == 0 {
		w.turns = append(w.turns, h)
	}
	h.waiting = append(h.waiting, turn)
	return turn
}

// releaseSlot returns a slot.
func (w *Window) releaseSlot() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight--
	w.admitWaiting()
}

// admitWaiting gives free slots to the holders whose turn it is.
func (w *Window) admitWaiting() {
	for w.inFlight < w.limit && len(w.turns) > 0 {
		h := w.turns[0]
		w.turns = w.turns[1:]
		turn := h.waiting[0]
		if h.waiting = h.waiting[1:]; len(h.waiting) > 0 {
			w.turns = append(w.turns, h)
		}
		w.inFlight++
		close(turn)
	}
}

// base is how fast the fastest answers of one sort are. It is forgotten after a while, because
// another server may answer by then.
type base struct {
	since         time.Time
	last, current time.Duration
}

// baseLasts is how long the fastest answer is remembered, at least.
const baseLasts = 30 * time.Second

func (b *base) observeFastest(took time.Duration, now time.Time) time.Duration {
	switch {
	case b.current == 0:
		b.since, b.current = now, took
	case now.Sub(b.since) > baseLasts:
		b.since, b.last, b.current = now, b.current, took
	default:
		b.current = min(b.current, took)
	}
	if b.last == 0 {
		return b.current
	}
	return min(b.last, b.current)
}

// grace is how much longer than the fastest an answer may take without being late, however short the fastest is.
const grace = 50 * time.Millisecond

// RecordAnswer notes the answer to a write of a sort, such as "PATCH pods/status". busy says that
// the API server refused it because it has too much to do.
func (w *Window) RecordAnswer(sort string, took time.Duration, busy bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.admitWaiting()
	if w.fixed {
		return
	}
	now := w.now()
	if busy {
		// All requests that are under way then are refused together: they count as one.
		if now.Sub(w.refused) > time.Second {
			w.refused, w.limit = now, max(w.limit/2, 1)
		}
		w.answers, w.late, w.short = 0, 0, false
		return
	}
	b := w.bases[sort]
	if b == nil {
		b = &base{}
		w.bases[sort] = b
	}
	w.typical += (took - w.typical) / 8
	fastest := b.observeFastest(took, now)
	w.answers++
	if took > max(4*fastest, fastest+grace) {
		w.late++
	}
	if w.answers < w.limit {
		return
	}
	switch {
	case 2*w.late > w.answers:
		w.limit = max(w.limit*7/8, min(w.limit, least))
	case 5*w.late < w.answers && w.short:
		w.limit = min(w.limit+max(w.limit/4, 1), most)
	}
	w.answers, w.late, w.short = 0, 0, len(w.turns) > 0
}
