// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"runtime"
	"time"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
)

// Option changes how an engine works.
type Option func(*options)

type options struct {
	clock       func() time.Time
	sinks       []Sink
	sinksOf     []func(*Engine) Sink
	observers   []Observer
	points      []decision.Name
	parallel    int
	grace       time.Duration
	patience    time.Duration
	memory      uint64
	viewBytes   int
	tenantBytes int
	invalid     func(namespace string, err error)
	// compiledLate is called when bundles are compiled that were refused with SlowError.
	compiledLate func()
	spares       func(decision.Subject) bool
	// fair is how long the evaluations of one tenant may take within the window.
	fair time.Duration
}

func defaultOptions() options {
	o := options{
		clock:     time.Now,
		parallel:  max(4*runtime.GOMAXPROCS(0), 16),
		grace:     time.Second,
		patience:  1,
		memory:    512 << 20,
		viewBytes: DefaultViewBytes, tenantBytes: DefaultTenantBytes, invalid: func(string, error) {}, compiledLate: func() {},
		spares: func(decision.Subject) bool { return false },
	}
	WithShare(0.25)(&o)
	for _, p := range catalog.All() {
		o.points = append(o.points, p.Name)
		if p.Exemption != "" {
			o.points = append(o.points, p.Exemption)
		}
	}
	return o
}

func (o *options) notifyObservers(f func(Observer)) {
	for _, obs := range o.observers {
		f(obs)
	}
}

// Sink takes the records of decisions. The engine calls it before it returns the
// decision to the caller, so it must be quick and must not block.
type Sink interface{ RecordDecision(decision.Record) }

// Observer receives what happens to the engine itself, for metrics and events.
type Observer interface {
	// RevisionActivated is called when another revision decides.
	RevisionActivated(revision string)
	// EvaluationStuck is called with 1 when an evaluation does not end after it was cancelled, and
	// with -1 when it ends after all.
	EvaluationStuck(point decision.Name, delta int)
	// DecisionThrottled is called for each decision that is a fallback because the
	// policies of the namespace's own people took too much of the processors.
	DecisionThrottled(namespace string, point decision.Name)
	// RolledBack is called when the watchdog gave up on bundles.
	RolledBack(Rollback)
	// BundlesWithheld is called after Activated with the bundles that were rolled back and that
	// nothing replaces: decisions that they take part in are the strictest answers until
	// they are changed or deleted. It is called with none when there are none any more.
	BundlesWithheld(bundle.Set)
}

// WithClock sets the clock that records carry. Policies never see it.
func WithClock(now func() time.Time) Option { return func(o *options) { o.clock = now } }

// WithSink adds a sink for records.
func WithSink(s Sink) Option { return func(o *options) { o.sinks = append(o.sinks, s) } }

// WithSinkOf adds a sink that works with the engine itself, such as one that makes
// decisions again.
func WithSinkOf(f func(*Engine) Sink) Option {
	return func(o *options) { o.sinksOf = append(o.sinksOf, f) }
}

// WithObserver adds an observer.
func WithObserver(obs Observer) Option {
	return func(o *options) { o.observers = append(o.observers, obs) }
}

// WithPoints replaces the points that are prepared ahead of the first question;
// without it these are the points of package decision.
func WithPoints(names ...decision.Name) Option { return func(o *options) { o.points = names } }

// WithParallel sets how many evaluations run at a time.
func WithParallel(n int) Option { return func(o *options) { o.parallel = max(n, 1) } }

// WithGrace sets how long after its budget an evaluation counts as stuck.
func WithGrace(d time.Duration) Option { return func(o *options) { o.grace = d } }

// WithPatience lets every evaluation take so many times the budget of its point, for
// callers that prefer a late answer to a fallback on a busy machine. The default
// is 1.
func WithPatience(times int) Option {
	return func(o *options) { o.patience = time.Duration(max(times, 1)) }
}

// WithMemory sets by how many bytes the heap may grow during an evaluation in which
// rules of users take part. It is a guard against policies that explode, looked at
// every 20 ms. Where a namespace's own bundles take part a quarter of it holds. The
// heap is that of the process: an evaluation of the built-in rules alone is never given
// up for what another one takes.
func WithMemory(bytes uint64) Option { return func(o *options) { o.memory = bytes } }

// WithViewBytes bounds the compiled policies of namespaces that are kept, in bytes; DefaultViewBytes without it.
func WithViewBytes(bytes int) Option { return func(o *options) { o.viewBytes = bytes } }

// WithTenantBytes bounds what the bundles of all namespaces may take of the heap together, in bytes;
// DefaultTenantBytes without it.
func WithTenantBytes(bytes int) Option { return func(o *options) { o.tenantBytes = bytes } }

// WithInvalid has f called with each namespace whose bundles turn out not to compile with those that the platform has
// since. The error stays what Snapshot.Problem says of it. f must not block.
func WithInvalid(f func(namespace string, err error)) Option {
	return func(o *options) { o.invalid = f }
}

// WithSpared says which subjects are decided without the bundles that are withheld, such as
// those by which people change or delete a bundle. A Missing says it for itself.
func WithSpared(spares func(decision.Subject) bool) Option {
	return func(o *options) { o.spares = spares }
}

// WithShare sets which part of the processors, from 0 to 1, the policies of one
// namespace's own people may take over 10 s; a quarter without it. Their
// decisions are fallbacks beyond it. What counts is how long evaluations took that
// ended within that time, and how long others run that did not end, waiting for a
// processor included.
func WithShare(part float64) Option {
	return func(o *options) {
		o.fair = time.Duration(part * float64(runtime.GOMAXPROCS(0)) * float64(window))
	}
}

// WithCompiledLate has f called when bundles that were refused with SlowError are compiled after all, or no longer keep others from
// being compiled: what puts them in again finds them compiled. It is called in a goroutine of its own, and may block.
func WithCompiledLate(f func()) Option { return func(o *options) { o.compiledLate = f } }
