package record

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Shadows makes live decisions again with policies that are not active, aside,
// and counts what would be decided differently. Nothing is ever acted on. It is
// an engine.Sink, and takes as little time from live decisions as it is told:
// what it has no time for is skipped and counted.
type Shadows struct {
	engine   *engine.Engine
	share    float64
	backlog  int
	strikes  int
	counting []CounterOption
	observer ShadowObserver
	sampled  func(Sampled)
	busy     func() bool
	clock    func() time.Time
	sleep    func(context.Context, time.Duration)

	ctx    context.Context
	cancel context.CancelFunc
	queue  chan decision.Record
	done   chan struct{}

	mu      sync.RWMutex
	watched map[string]*shadow
}

// shadow is what is watched under one name. Its counts belong to whoever holds
// its lock.
type shadow struct {
	name     string
	snapshot *engine.Snapshot
	only     func(decision.Subject) bool
	since    time.Time

	mu      sync.Mutex
	counter *Counter
	skipped uint64
	late    int // in a row
	stopped string
}

// ShadowObserver is told of each decision that was made again, for metrics. It
// must be quick.
type ShadowObserver interface {
	// Shadowed is told a result: same, skipped or a Kind.
	Shadowed(name string, point decision.Name, result string)
	// Unshadowed is called when the counts of a name are dropped.
	Unshadowed(name string)
}

// Results of decisions that are no kind of difference.
const (
	Same    = "same"
	Skipped = "skipped"
)

// Sampled is a difference that was taken as a sample.
type Sampled struct {
	// Name is that of the shadow.
	Name       string
	Difference Difference
	// Now is the decision as the shadow made it, question and all. It was not
	// acted on.
	Now decision.Record
}

// ShadowOption changes how shadows work.
type ShadowOption func(*Shadows)

// WithShare sets how much of one processor's time it may take, more than 0 and
// at most 1: it rests after each decision for as long as that takes.
func WithShare(share float64) ShadowOption {
	return func(s *Shadows) { s.share = min(max(share, 0.001), 1) }
}

// WithBacklog sets how many decisions may wait to be made again.
func WithBacklog(n int) ShadowOption { return func(s *Shadows) { s.backlog = max(n, 1) } }

// WithStrikes sets after how many decisions in a row that did not end in time a
// shadow stops itself.
func WithStrikes(n int) ShadowOption { return func(s *Shadows) { s.strikes = max(n, 1) } }

// WithCounting sets how differences are counted.
func WithCounting(opts ...CounterOption) ShadowOption {
	return func(s *Shadows) { s.counting = opts }
}

// WithShadowObserver sets who is told of each decision.
func WithShadowObserver(o ShadowObserver) ShadowOption { return func(s *Shadows) { s.observer = o } }

// WithSampled has f called for each difference that is taken as a sample. It is
// called by the one goroutine that all shadows share.
func WithSampled(f func(Sampled)) ShadowOption { return func(s *Shadows) { s.sampled = f } }

// WithBusy replaces what says that live decisions need the processors. Without
// it they do when as many are under way as there are processors.
func WithBusy(f func() bool) ShadowOption { return func(s *Shadows) { s.busy = f } }

// WithShadowClock replaces the clock, and how to wait until a context ends.
func WithShadowClock(now func() time.Time, sleep func(context.Context, time.Duration)) ShadowOption {
	return func(s *Shadows) { s.clock, s.sleep = now, sleep }
}

// NewShadows makes a sink for the engine's records. Close ends it.
func NewShadows(e *engine.Engine, opts ...ShadowOption) *Shadows {
	s := &Shadows{
		engine: e, share: 0.2, backlog: 256, strikes: 3, clock: time.Now, sleep: sleep,
		busy:    func() bool { return e.Deciding() >= runtime.GOMAXPROCS(0) },
		watched: map[string]*shadow{}, done: make(chan struct{}),
	}
	for _, o := range opts {
		o(s)
	}
	s.queue = make(chan decision.Record, s.backlog)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.work()
	return s
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// WatchOption limits what a shadow is about.
type WatchOption func(*shadow)

// Only compares decisions about some subjects alone.
func Only(f func(decision.Subject) bool) WatchOption { return func(w *shadow) { w.only = f } }

// Watch makes decisions again with a snapshot of the engine from now on. Another
// revision under the same name starts counting anew; the same one goes on, as it
// is, even if it stopped itself.
func (s *Shadows) Watch(name string, snapshot *engine.Snapshot, opts ...WatchOption) {
	w := &shadow{name: name, snapshot: snapshot, since: s.clock(), counter: NewCounter(s.counting...)}
	for _, o := range opts {
		o(w)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.watched[name]; old != nil {
		if old.snapshot.Revision() == snapshot.Revision() {
			return
		}
		s.forget(name)
	}
	s.watched[name] = w
}

// Stop ends a shadow and drops its counts.
func (s *Shadows) Stop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched[name] != nil {
		s.forget(name)
	}
}

func (s *Shadows) forget(name string) {
	delete(s.watched, name)
	if s.observer != nil {
		s.observer.Unshadowed(name)
	}
}

// Tally is what a shadow counted so far; false if there is none of the name.
func (s *Shadows) Tally(name string) (Tally, bool) {
	s.mu.RLock()
	w := s.watched[name]
	s.mu.RUnlock()
	if w == nil {
		return Tally{}, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.counter.Tally()
	t.Revision, t.Since, t.Skipped, t.Stopped = w.snapshot.Revision(), w.since, w.skipped, w.stopped
	return t, true
}

// Close ends all without waiting for what is left.
func (s *Shadows) Close() {
	s.cancel()
	<-s.done
}

// Record implements engine.Sink.
func (s *Shadows) Record(r decision.Record) {
	if r.Point == engine.RollbackPoint || s.ctx.Err() != nil {
		return
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	wanted := false
	for _, w := range s.watched {
		wanted = wanted || w.wants(r.Subject)
	}
	if !wanted {
		return
	}
	select {
	case s.queue <- r:
		return
	default:
	}
	for _, w := range s.watched {
		if w.wants(r.Subject) {
			w.skip()
			s.observe(w, r.Point, Skipped)
		}
	}
}

func (w *shadow) wants(subject decision.Subject) bool {
	w.mu.Lock()
	stopped := w.stopped != ""
	w.mu.Unlock()
	return !stopped && (w.only == nil || w.only(subject))
}

func (w *shadow) skip() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.skipped++
}

// observe is called with the lock held, so that nothing is told of a shadow
// that is gone.
func (s *Shadows) observe(w *shadow, point decision.Name, result string) {
	if s.observer != nil && s.watched[w.name] == w {
		s.observer.Shadowed(w.name, point, result)
	}
}

func (s *Shadows) work() {
	defer close(s.done)
	for {
		select {
		case <-s.ctx.Done():
			return
		case r := <-s.queue:
			for _, w := range s.wanting(r.Subject) {
				s.again(w, r)
			}
		}
	}
}

func (s *Shadows) wanting(subject decision.Subject) []*shadow {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []*shadow
	for _, w := range s.watched {
		if w.wants(subject) {
			out = append(out, w)
		}
	}
	return out
}

// pause is how long it waits before it looks again whether there is room.
const pause = time.Millisecond

// again makes one decision again with one shadow, and rests.
func (s *Shadows) again(w *shadow, r decision.Record) {
	if w.snapshot.RevisionFor(r.Subject) == r.Revision {
		s.count(w, r, r, nil) // decided by the same policies: they are pure
		return
	}
	now, took, err := s.decide(w, r)
	if err != nil || s.ctx.Err() != nil {
		return // of a point that is not of the contract, or nobody wants to know
	}
	start := s.clock() // comparing long answers is work too
	d, err := Compare(s.engine, r, now)
	if err != nil {
		return
	}
	s.count(w, r, now, d)
	took += s.clock().Sub(start)
	if rest := time.Duration(float64(took) * (1/s.share - 1)); rest > 0 {
		s.sleep(s.ctx, rest)
	}
}

// decide waits until there is room. A decision that does not come in time is
// asked for once more, since live ones may have been in the way.
func (s *Shadows) decide(w *shadow, r decision.Record) (now decision.Record, took time.Duration, err error) {
	for range 2 {
		for s.busy() && s.ctx.Err() == nil {
			s.sleep(s.ctx, pause)
		}
		start := s.clock()
		now, err = Again(s.ctx, s.engine, w.snapshot, r)
		took += s.clock().Sub(start)
		if err != nil || now.Outcome != decision.TimedOut {
			break
		}
	}
	return now, took, err
}

func (s *Shadows) count(w *shadow, then, now decision.Record, d *Difference) {
	result := Same
	if d != nil {
		result = string(d.Kind)
	}
	s.mu.RLock()
	s.observe(w, then.Point, result)
	s.mu.RUnlock()
	if w.add(then, now, d, s.strikes) && s.sampled != nil {
		s.sampled(Sampled{Name: w.name, Difference: *d, Now: now})
	}
}

func (w *shadow) add(then, now decision.Record, d *Difference, strikes int) (sampled bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case now.Outcome != decision.TimedOut:
		w.late = 0
	case d != nil && d.Kind == Lost: // the live one came in time
		w.late++
	}
	if w.late >= strikes {
		w.stopped = fmt.Sprintf("%d decisions in a row did not end in time, the last one of %s: %s", w.late, now.Point, now.Error)
	}
	return w.counter.Add(d, then.Duration, now.Duration)
}
