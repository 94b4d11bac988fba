// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
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
	// compiledLate is called when bundles that were refused with SlowError are compiled.
	compiledLate func()
	spares       func(decision.Subject) bool
	// compiled has the policies of the platform of other engines, by content.
	compiled map[string]*compiledView
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
		spares: func(decision.Subject) bool { return false }, compiled: map[string]*compiledView{},
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

// Observer receives events of the engine itself, for metrics and events.
type Observer interface {
	// RevisionActivated is called when another revision becomes active.
	RevisionActivated(revision string)
	// EvaluationStuck is called with 1 when an evaluation does not end after it was cancelled, and
	// with -1 when it ends after all.
	EvaluationStuck(point decision.Name, delta int)
	// DecisionThrottled is called for each decision that is a fallback because the namespace's own
	// policies used too much processor time.
	DecisionThrottled(namespace string, point decision.Name)
	// RolledBack is called when the watchdog has rolled back bundles.
	RolledBack(Rollback)
	// BundlesWithheld is called after RevisionActivated with the bundles that were rolled back and that
	// nothing replaces: decisions that they take part in get the strictest answers until the bundles are
	// changed or deleted. It is called with an empty set when there are none any more.
	BundlesWithheld(bundle.Set)
}

// WithClock sets the clock for the times in records. Policies never see it.
func WithClock(now func() time.Time) Option { return func(o *options) { o.clock = now } }

// WithSink adds a sink for records.
func WithSink(s Sink) Option { return func(o *options) { o.sinks = append(o.sinks, s) } }

// WithSinkOf adds a sink that needs the engine itself, such as one that makes decisions again.
func WithSinkOf(f func(*Engine) Sink) Option {
	return func(o *options) { o.sinksOf = append(o.sinksOf, f) }
}

// WithObserver adds an observer.
func WithObserver(obs Observer) Option {
	return func(o *options) { o.observers = append(o.observers, obs) }
}

// WithPoints replaces the points that are prepared before the first decision; the points of package
// decision if unset.
func WithPoints(names ...decision.Name) Option { return func(o *options) { o.points = names } }

// WithParallel sets how many evaluations run at once.
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
// rules of users take part. It is a guard against policies that allocate without end, and is checked
// every 20 ms. If a namespace's own bundles take part, the limit is a quarter. The heap is that of the
// process, so an evaluation of the built-in rules alone is never stopped because of the memory of
// another one.
func WithMemory(bytes uint64) Option { return func(o *options) { o.memory = bytes } }

// WithViewBytes bounds the compiled policies of namespaces that are kept, in bytes; DefaultViewBytes if unset.
func WithViewBytes(bytes int) Option { return func(o *options) { o.viewBytes = bytes } }

// WithTenantBytes bounds how many bytes of the heap the bundles of all namespaces may take together;
// DefaultTenantBytes if unset.
func WithTenantBytes(bytes int) Option { return func(o *options) { o.tenantBytes = bytes } }

// WithInvalid makes the engine call f with each namespace whose bundles do not compile with the changed bundles of
// the platform. Snapshot.NamespaceProblem returns the same error. f must not block.
func WithInvalid(f func(namespace string, err error)) Option {
	return func(o *options) { o.invalid = f }
}

// WithSpared sets which subjects are decided without the withheld bundles, such as bundles themselves,
// so that users can change or delete them. For missing bundles see Missing.Spares.
func WithSpared(spares func(decision.Subject) bool) Option {
	return func(o *options) { o.spares = spares }
}

// WithShare sets which part of the processors, from 0 to 1, the own policies of one namespace may use
// over 10 s; a quarter if unset. Beyond it their decisions are fallbacks. Evaluations that ended
// within that time count, and those that still run, including the time in which they wait for a
// processor.
func WithShare(part float64) Option {
	return func(o *options) {
		o.fair = time.Duration(part * float64(runtime.GOMAXPROCS(0)) * float64(window))
	}
}

// WithCompiledLate makes the engine call f when bundles that were refused with SlowError are compiled after all, or no longer
// prevent others from being compiled. If they are activated again, they need no compilation. f is called in a separate goroutine,
// and may block.
func WithCompiledLate(f func()) Option { return func(o *options) { o.compiledLate = f } }

// WithCompiled makes the engine take policies of the platform that other engines have compiled where they are the same, in place of compiling
// them again, which takes 0.2 s of a processor for the built-in ones.
func WithCompiled(from ...CompiledPolicies) Option {
	return func(o *options) {
		for _, c := range from {
			maps.Copy(o.compiled, c.views)
		}
	}
}

// CompiledPolicies are policies of the platform that an engine has compiled, for WithCompiled. They do not keep that engine in memory.
type CompiledPolicies struct{ views map[string]*compiledView }

// CompiledPolicies returns the policies of the platform in the snapshot.
func (s *Snapshot) CompiledPolicies() CompiledPolicies { return CompiledPolicies{s.platformViews()} }
