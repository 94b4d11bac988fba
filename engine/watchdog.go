package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
)

// strikes is how often bundles may be to blame for a decision that did not come
// in time.
const strikes = 3

// watchdog counts what bundles did, by the revision of those to blame.
type watchdog struct {
	mu      sync.Mutex
	busy    bool // a case is being judged
	strikes map[string]int
	bans    map[string]bool
}

// Rollback is a set of bundles that was given up, and why.
type Rollback struct {
	// From and To are revisions of the engine.
	From, To string
	// Namespace is the tenant's whose bundles they are; empty for those of the
	// platform.
	Namespace string
	Bundles   []string
	Point     decision.Name
	Reason    string
}

// RolledBackError refuses bundles that the watchdog rolled back before.
type RolledBackError struct {
	Namespace string // as in Rollback
	Bundles   []string
}

func (err RolledBackError) Error() string {
	return fmt.Sprintf("bundles %v were rolled back because decisions did not end in time with them; change one to try again", err.Bundles)
}

// banned finds a part of a set that was rolled back.
func (w *watchdog) banned(set bundle.Set) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ns := range append(set.Namespaces(), "") {
		if part := set.Of(ns); w.bans[part.Revision()] {
			return RolledBackError{Namespace: ns, Bundles: part.IDs()}
		}
	}
	return nil
}

// out counts a strike, and bans the bundles when it was the last one.
func (w *watchdog) out(part bundle.Set) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.strikes == nil {
		w.strikes, w.bans = map[string]int{}, map[string]bool{}
	}
	revision := part.Revision()
	if w.strikes[revision]++; w.strikes[revision] < strikes {
		return false
	}
	delete(w.strikes, revision)
	w.bans[revision] = true
	return true
}

// claim makes the caller the only one to judge.
func (w *watchdog) claim() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.busy
	w.busy = true
	return !was
}

func (w *watchdog) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
}

// suspect looks, aside, into a decision that did not come in time.
func (e *Engine) suspect(s *Snapshot, ev *evaluation) {
	if len(s.set) == 0 || !e.watch.claim() {
		return
	}
	go func() {
		defer e.watch.release()
		stuck := false
		select {
		case <-ev.done:
		case <-time.After(e.grace):
			stuck = true
		}
		if ns, guilty := e.judge(s, ev, stuck); guilty {
			e.strike(s, ns, ev.ask, stuck)
		}
	}()
}

// judge finds whose bundles are to blame: a tenant's, or the platform's (""). A
// processor that was taken away makes good policies late too, so the question
// is asked again, with the suspected bundles and without: only when there is no
// answer with them and one without are they to blame. A tenant is suspected
// first, so that it cannot have the platform's bundles rolled back.
func (e *Engine) judge(s *Snapshot, ev *evaluation, stuck bool) (namespace string, guilty bool) {
	if own, ok := s.tenants[ev.ask.subject.Namespace]; ok {
		if e.answers(s.cluster, ev) {
			return ev.ask.subject.Namespace, stuck || !e.answers(own, ev)
		}
		stuck = true // the platform's part has just had its second chance
	}
	if len(s.set.Of("")) == 0 || !e.answers(e.base.cluster, ev) {
		return "", false
	}
	return "", stuck || !e.answers(s.cluster, ev)
}

// answers asks again and says whether an answer, of any kind, came in time.
// That nobody defines the point is an answer.
func (e *Engine) answers(v *view, ev *evaluation) bool {
	ctx := context.Background()
	q, err := v.query(ctx, ev.ask.name)
	if err != nil || !q.defined {
		return true
	}
	again := *ev.ask
	again.answer = func(ast.Value, int, string) error { return nil }
	retry := newEvaluation(q, ev.input, &again)
	if outcome, _ := e.run(ctx, retry); outcome == decision.TimedOut && !retry.late {
		return true // it did not even begin: nobody is to blame
	}
	return !retry.late
}

// strike counts a failure of some bundles, and at the third goes on without.
func (e *Engine) strike(s *Snapshot, namespace string, ask *question, stuck bool) {
	to := e.retreat(s, namespace)
	if to == nil {
		return
	}
	how := "took longer than " + ask.budget.String()
	if stuck {
		how = "did not end within " + ask.budget.String()
	}
	r := Rollback{
		From: s.revision, To: to.revision, Namespace: namespace, Bundles: s.set.Of(namespace).IDs(), Point: ask.name,
		Reason: fmt.Sprintf("%d decisions of %s %s with these bundles, and were made in time without them", strikes, ask.name, how),
	}
	e.each(func(o Observer) { o.RolledBack(r); o.Activated(to.revision) })
	e.emit(decision.Record{
		ID: e.lastID.Add(1), Time: e.clock(), Point: RollbackPoint, Outcome: decision.TimedOut,
		Subject:  decision.Subject{Kind: "Revision", Namespace: namespace, Name: s.revision},
		Revision: to.revision, Bundles: r.Bundles, Output: r, Error: r.Reason,
	})
}

// RollbackPoint is the point that the record of a rollback names. Nobody asks it.
const RollbackPoint decision.Name = "engine/rollback"

// retreat goes on without the bundles once the strikes are out: a tenant's are
// dropped, the platform's are replaced by the ones before.
func (e *Engine) retreat(s *Snapshot, namespace string) *Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.active.Load() != s || !e.watch.out(s.set.Of(namespace)) {
		return nil // another is active by now, or it may try again
	}
	to := e.without(s, namespace)
	e.active.Store(to)
	return to
}

func (e *Engine) without(s *Snapshot, namespace string) *Snapshot {
	rest := s.set.Without(namespace)
	if namespace == "" && e.previous != nil {
		rest = append(rest, e.previous...)
	}
	e.previous = nil
	for _, set := range []bundle.Set{rest, s.set.Without("")} {
		if e.watch.banned(set) != nil {
			continue
		}
		// What compiled before compiles again, but for tenants' packages that
		// are in the way of the platform's old ones.
		if to, err := e.Compile(context.Background(), set); err == nil {
			return to
		}
	}
	return e.base
}
