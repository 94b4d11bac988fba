// SPDX-License-Identifier: Apache-2.0

// Package shadow makes live decisions again with policies that are not active, and
// counts what they would decide differently.
package shadow

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// Runner makes live decisions again in the background with policies that are not active, and counts
// the differences. No controller acts on them. It is an engine.Sink, and takes no more time from live
// decisions than its options allow: it skips and counts the decisions that it has no time for.
type Runner struct {
	engine   *engine.Engine
	share    float64
	backlog  int
	strikes  int
	observer Observer
	sampled  func(Sampled)
	busy     func() bool
	clock    func() time.Time
	sleep    func(context.Context, time.Duration)

	ctx    context.Context
	cancel context.CancelFunc
	queue  chan decision.Record
	queued atomic.Int64 // bytes of the records in queue
	done   chan struct{}

	mu      sync.RWMutex
	watched map[string]*shadow
}

// shadow is a snapshot that is watched under one name. It is immutable: if the enforced bundles
// change, another shadow replaces it and continues its counts.
type shadow struct {
	name, about string
	snapshot    *engine.Snapshot
	beside      *engine.Snapshot // nil if any live decision will do
	only        func(decision.Subject) bool
	*counts
}

// counts are the counts of a shadow's name and topic. Only the holder of their lock may use them.
type counts struct {
	since time.Time

	mu      sync.Mutex
	counter *compare.Counter
	skipped uint64
	late    int // in a row
	stopped string
}

// Observer receives each decision that was made again, for metrics. It
// must be quick.
type Observer interface {
	// ShadowCompared receives a result: same, skipped or a Kind.
	ShadowCompared(name string, point decision.Name, result string)
	// ShadowDropped is called when the counts of a name are dropped.
	ShadowDropped(name string)
}

// Results of decisions that are no kind of difference.
const (
	Same    = "same"
	Skipped = "skipped"
)

// Sampled is a difference that was taken as a sample.
type Sampled struct {
	// Name is the name of the shadow.
	Name       string
	Difference compare.Difference
	// Now is the decision of the shadow, with its input. No controller acted on it.
	Now decision.Record
}

// Option changes how shadows work.
type Option func(*Runner)

// WithShare sets which part of one processor's time the runner may use, more than 0 and at most 1: it
// pauses after each decision accordingly.
func WithShare(share float64) Option {
	return func(s *Runner) { s.share = min(max(share, 0.001), 1) }
}

// WithBacklog sets how many decisions may wait to be made again.
func WithBacklog(n int) Option { return func(s *Runner) { s.backlog = max(n, 1) } }

// WithStrikes sets after how many late decisions in a row a shadow stops itself.
func WithStrikes(n int) Option { return func(s *Runner) { s.strikes = max(n, 1) } }

// WithObserver sets the observer of each decision.
func WithObserver(o Observer) Option { return func(s *Runner) { s.observer = o } }

// WithSampled makes the runner call f for each difference that is taken as a sample, from the one
// goroutine that all shadows share.
func WithSampled(f func(Sampled)) Option { return func(s *Runner) { s.sampled = f } }

// WithBusy replaces the function that reports whether live decisions need the processors. By default
// they do if as many are in progress as there are processors.
func WithBusy(f func() bool) Option { return func(s *Runner) { s.busy = f } }

// WithClock replaces the clock, and how to wait until a context ends.
func WithClock(now func() time.Time, sleep func(context.Context, time.Duration)) Option {
	return func(s *Runner) { s.clock, s.sleep = now, sleep }
}

// New makes a sink for the engine's records. Close ends it.
func New(e *engine.Engine, opts ...Option) *Runner {
	s := &Runner{
		engine: e, share: 0.2, backlog: 256, strikes: engine.Strikes, clock: time.Now, sleep: sleepContext,
		busy:    func() bool { return e.DecisionsInFlight() >= runtime.GOMAXPROCS(0) },
		watched: map[string]*shadow{}, done: make(chan struct{}),
	}
	for _, o := range opts {
		o(s)
	}
	s.queue = make(chan decision.Record, s.backlog)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	recovery.Go("shadow", s.runWorker, nil)
	return s
}

func sleepContext(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Watch makes decisions again with a snapshot of the engine from now on. If the topic differs from the
// previous one under the name, counting starts over. With the same topic the counts continue, even if
// the shadow stopped itself.
func (s *Runner) Watch(name string, snapshot *engine.Snapshot, opts ...WatchOption) {
	w := &shadow{name: name, about: snapshot.Revision(), snapshot: snapshot}
	for _, o := range opts {
		o(w)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.watched[name]; old != nil && old.about == w.about {
		w.counts = old.counts
	} else {
		if old != nil {
			s.forgetShadow(name)
		}
		w.counts = &counts{since: s.clock(), counter: compare.NewCounter()}
	}
	s.watched[name] = w
}

// StopWatching ends a shadow and drops its counts.
func (s *Runner) StopWatching(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched[name] != nil {
		s.forgetShadow(name)
	}
}

func (s *Runner) forgetShadow(name string) {
	delete(s.watched, name)
	if s.observer != nil {
		s.observer.ShadowDropped(name)
	}
}

// ShadowTally returns the counts of a shadow so far; false if there is none with the name.
func (s *Runner) ShadowTally(name string) (compare.Tally, bool) {
	s.mu.RLock()
	w := s.watched[name]
	s.mu.RUnlock()
	if w == nil {
		return compare.Tally{}, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.counter.CurrentTally()
	t.Revision, t.Since, t.Skipped, t.Stopped = w.snapshot.Revision(), w.since, w.skipped, w.stopped
	return t, true
}

// Close stops all shadows without waiting for queued records.
func (s *Runner) Close() {
	s.cancel()
	<-s.done
}

// RecordDecision implements engine.Sink.
func (s *Runner) RecordDecision(r decision.Record) {
	if r.Point == engine.RollbackPoint || s.ctx.Err() != nil {
		return
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	wanted := false
	for _, w := range s.watched {
		wanted = wanted || w.wantsSubject(r.Subject)
	}
	if !wanted {
		return
	}
	if s.enqueueRecord(r) {
		return
	}
	for _, w := range s.watched {
		if w.wantsSubject(r.Subject) {
			s.notifyObserver(w, r.Point, Skipped)
			w.countSkipped()
		}
	}
}

// QueuedBytes is roughly how many bytes the queued records may take together.
const QueuedBytes = 8 << 20

// enqueueRecord queues a record, and reports whether there was room.
func (s *Runner) enqueueRecord(r decision.Record) bool {
	size := int64(record.MemorySize(r))
	if s.queued.Add(size) <= QueuedBytes {
		select {
		case s.queue <- r:
			return true
		default:
		}
	}
	s.queued.Add(-size)
	return false
}

func (w *shadow) wantsSubject(subject decision.Subject) bool {
	w.mu.Lock()
	stopped := w.stopped != ""
	w.mu.Unlock()
	return !stopped && (w.only == nil || w.only(subject))
}

func (c *counts) countSkipped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skipped++
}

// notifyObserver is called with the lock held, so that the observer receives no result of
// counts that were dropped. It is called before the result is counted, so that a
// caller that sees a count knows that the observer has received it.
func (s *Runner) notifyObserver(w *shadow, point decision.Name, result string) {
	if now := s.watched[w.name]; s.observer != nil && now != nil && now.counts == w.counts {
		s.observer.ShadowCompared(w.name, point, result)
	}
}

func (s *Runner) runWorker() {
	defer close(s.done)
	for {
		select {
		case <-s.ctx.Done():
			return
		case r := <-s.queue:
			s.queued.Add(-int64(record.MemorySize(r)))
			for _, w := range s.shadowsForSubject(r.Subject) {
				_ = recovery.Call("shadow", func() error { s.replayRecord(w, r); return nil })
			}
		}
	}
}

func (s *Runner) shadowsForSubject(subject decision.Subject) []*shadow {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []*shadow
	for _, w := range s.watched {
		if w.wantsSubject(subject) {
			out = append(out, w)
		}
	}
	return out
}

// pause is how long the runner waits before it checks again whether live decisions need the processors.
const pause = time.Millisecond

// replayRecord makes one decision again with one shadow, and rests.
func (s *Runner) replayRecord(w *shadow, r decision.Record) {
	if w.beside != nil && w.beside.RevisionFor(r.Subject) != r.Revision {
		s.reportResult(w, r.Point, Skipped)
		w.countSkipped()
		return
	}
	if w.snapshot.RevisionFor(r.Subject) == r.Revision {
		s.countResult(w, r, r, nil) // the same policies give the same answer
		return
	}
	now, took, err := s.replayWhenIdle(w, r)
	if err != nil || s.ctx.Err() != nil {
		return // the point is not of the contract, or the runner stopped
	}
	start := s.clock() // comparing long answers takes time too
	d, err := compare.DiffRecords(s.engine, r, now)
	if err != nil {
		return
	}
	s.countResult(w, r, now, d)
	took += s.clock().Sub(start)
	if rest := time.Duration(float64(took) * (1/s.share - 1)); rest > 0 {
		s.sleep(s.ctx, rest)
	}
}

// replayWhenIdle waits until live decisions leave room. A late decision is made once more, since live
// ones may have delayed it.
func (s *Runner) replayWhenIdle(w *shadow, r decision.Record) (now decision.Record, took time.Duration, err error) {
	for range 2 {
		for s.busy() && s.ctx.Err() == nil {
			s.sleep(s.ctx, pause)
		}
		start := s.clock()
		now, err = compare.ReplayOnce(s.ctx, s.engine, w.snapshot, r)
		took += s.clock().Sub(start)
		if err != nil || now.Outcome != decision.TimedOut {
			break
		}
	}
	return now, took, err
}

func (s *Runner) countResult(w *shadow, then, now decision.Record, d *compare.Difference) {
	result := Same
	if d != nil {
		result = string(d.Kind)
	}
	s.reportResult(w, then.Point, result)
	if w.addResult(then, now, d, s.strikes) && s.sampled != nil {
		s.sampled(Sampled{Name: w.name, Difference: *d, Now: now})
	}
}

func (s *Runner) reportResult(w *shadow, point decision.Name, result string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.notifyObserver(w, point, result)
}

func (c *counts) addResult(then, now decision.Record, d *compare.Difference, strikes int) (sampled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case now.Outcome != decision.TimedOut:
		c.late = 0
	case d != nil && d.Kind == compare.Lost: // the live decision was in time
		c.late++
	}
	if c.late >= strikes {
		c.stopped = fmt.Sprintf("%d decisions in a row did not end in time, the last one of %s: %s", c.late, now.Point, now.Error)
	}
	return c.counter.CountDecision(d, then.Duration, now.Duration)
}
