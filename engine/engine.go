// SPDX-License-Identifier: Apache-2.0

// Package engine answers decision points with Rego policies. It is a library that depends neither on
// Kubernetes nor on what the decisions are about.
//
//	e, err := engine.New(policies.FS)
//	plan, record := engine.Decide(ctx, e, rollout.PlanPoint(), subject, facts)
//
// There always is an answer, and in time: if no policy decides, the answer is the fallback of the
// point, and the record says why.
package engine

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/recovery"
	"github.com/regatta-sh/regatta/engine/term"
)

// Engine has the active policies. It is safe for concurrent use.
type Engine struct {
	options
	builtin *bundle.Bundle
	codec   *term.Codec
	active  atomic.Pointer[Snapshot]
	lastID  atomic.Uint64
	// deciding counts the decisions that callers wait for.
	deciding atomic.Int64
	views    *views
	workers  *workers
	shares   *tenantShares
	watch    watchdog

	mu      sync.Mutex // held while the active snapshot is changed
	base    *Snapshot  // the built-in policies alone
	lineage lineage
}

// New makes an engine with the built-in policies. It fails only if these do not compile.
func New(builtin fs.FS, opts ...Option) (*Engine, error) {
	b, err := bundle.ReadBuiltin(builtin)
	if err != nil {
		return nil, err
	}
	return FromBundle(b, opts...)
}

// FromBundle makes an engine with built-in policies that are read already.
func FromBundle(builtin *bundle.Bundle, opts ...Option) (*Engine, error) {
	e := &Engine{options: defaultOptions(), builtin: builtin, codec: &term.Codec{}}
	for _, o := range opts {
		o(&e.options)
	}
	e.workers, e.shares, e.views = newWorkers(e.parallel), newShares(e.parallel), newViews(e.viewBytes, e.points)
	e.views.tell = func(s *scope, err error) { recovery.Go("engine", func() { e.reportUnfit(s, err) }, nil) } // who is told may wait for who compiles
	e.views.compiledLate = e.compiledLate
	base, err := e.CompileBundles(context.Background(), nil)
	if err != nil {
		return nil, fmt.Errorf("loading the built-in policies: %w", err)
	}
	e.base = base
	e.active.Store(base)
	for _, sink := range e.sinksOf {
		e.sinks = append(e.sinks, sink(e))
	}
	e.reportActive(base)
	return e, nil
}

// CompileBundles makes a snapshot of users' bundles on top of the built-in policies,
// without making it active. Parts that are the same in the active snapshot, or in others of this
// engine, which may be nil, are not compiled again. Bundles of a namespace that are in one of these
// snapshots are compiled with changed bundles of the platform only after activation, so that a change
// of the platform does not wait for that. Snapshot.NamespaceProblem has the result.
func (e *Engine) CompileBundles(ctx context.Context, set bundle.Set, others ...*Snapshot) (*Snapshot, error) {
	return e.CompileMissing(ctx, set, e.active.Load().MissingBundles(), others...)
}

// ActivateBundles compiles users' bundles and makes them decide from now on. Decisions in progress are
// not affected.
func (e *Engine) ActivateBundles(ctx context.Context, set bundle.Set) error {
	s, err := e.CompileBundles(ctx, set)
	if err != nil {
		return fmt.Errorf("activating bundles: %w", err)
	}
	return e.Swap(s)
}

// CheckRolledBack returns a RolledBackError if Swap would refuse the set, without compiling anything;
// nil otherwise. Each bundle is checked by itself.
func (e *Engine) CheckRolledBack(set bundle.Set) error { return e.watch.checkRolledBack(set) }

// Swap makes a compiled snapshot the active one. Bundles that were rolled back
// do not decide again, with RolledBackError: that would only repeat the problem. They may be in the
// set as withheld bundles.
func (e *Engine) Swap(s *Snapshot) error {
	changed, err := e.swapSnapshot(s)
	if changed { // after the unlock, since an observer may call the engine
		e.reportActive(s)
		e.checkScopes(s)
	}
	return err
}

// reportActive notifies observers of the active revision.
func (e *Engine) reportActive(s *Snapshot) {
	withheld := s.set.WithheldBundles()
	e.notifyObservers(func(o Observer) { o.RevisionActivated(s.revision); o.BundlesWithheld(withheld) })
}

// ForgetBundle forgets the rollbacks of a bundle with a name, of any content, and its predecessor. It
// is for a bundle that is deleted. The namespace is empty for bundles of the platform. The active
// snapshot stays.
func (e *Engine) ForgetBundle(namespace, name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := name
	if namespace != "" {
		id = namespace + "/" + name
	} else {
		delete(e.lineage.before, name)
	}
	e.watch.forgetBundle(id)
}

func (e *Engine) swapSnapshot(s *Snapshot) (changed bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.watch.checkRolledBack(s.set); err != nil {
		return false, err
	}
	old := e.active.Load()
	if old.revision == s.revision {
		return false, nil
	}
	e.lineage.recordSet(old.set, s.set)
	e.active.Store(s)
	return true, nil
}

// ActiveSnapshot returns the active snapshot.
func (e *Engine) ActiveSnapshot() *Snapshot { return e.active.Load() }

// BaseSnapshot returns the snapshot of the built-in policies alone.
func (e *Engine) BaseSnapshot() *Snapshot { return e.base }

// BuiltinBundle returns the bundle of the built-in policies.
func (e *Engine) BuiltinBundle() *bundle.Bundle { return e.builtin }

// IsPointDefined reports whether any policy answers a point for the subject. It is for opt-in points.
func (e *Engine) IsPointDefined(name decision.Name, subject decision.Subject) bool {
	return e.active.Load().IsPointDefined(name, subject)
}

// Codec encodes facts for this engine, for callers that keep terms.
func (e *Engine) Codec() *term.Codec { return e.codec }

// DecisionsInFlight returns how many decisions are in progress that callers wait for to act on.
// Callers that do not act on their decisions can wait until there are few.
func (e *Engine) DecisionsInFlight() int { return int(e.deciding.Load()) }

// Close stops the goroutines that evaluate. Later decisions are fallbacks.
func (e *Engine) Close() { e.workers.stopWorkers() }
