// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// Strikes is how many decisions may come too late before policies are to blame for
// it: a machine that is busy makes good ones late now and then.
const Strikes = 3

// forgiveAfter is when a strike is forgotten: bundles may be active for months.
const forgiveAfter = time.Hour

// watchdog keeps when bundles were to blame, by the revision of those bundles.
type watchdog struct {
	mu      sync.Mutex
	busy    bool // a case is being judged
	strikes map[string][]time.Time
	bans    map[string]bool
}

// Rollback is a set of bundles that was given up, and why.
type Rollback struct {
	// From and To are revisions of the engine.
	From, To string
	// Namespace is the tenant's whose bundles they are; empty for those of the
	// platform.
	Namespace string
	// Canary is true if they are the platform's canaries: the bundles whose place
	// they took decide again.
	Canary  bool
	Bundles []string
	Point   decision.Name
	Reason  string
}

// RolledBackError refuses bundles that the watchdog rolled back before.
type RolledBackError struct {
	Namespace string // as in Rollback
	Bundles   []string
}

func (err RolledBackError) Error() string {
	return fmt.Sprintf("bundles %v were rolled back because decisions did not end in time with them; change one to try again", bundle.ShortIDs(err.Bundles))
}

// tenantOf is the namespace of a tenant's bundles; empty for others.
func tenantOf(part bundle.Set) string { return part[0].Namespace }

// banned finds a part of a set that was rolled back.
func (w *watchdog) banned(set bundle.Set) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.bans) == 0 {
		return nil
	}
	parts := []bundle.Set{set.Of("")}
	for _, b := range parts[0] { // a canary that was rolled back is not promoted
		parts = append(parts, bundle.Set{b})
	}
	for _, ns := range set.Namespaces() {
		parts = append(parts, set.Of(ns), set.Canaries(ns))
	}
	for _, part := range parts {
		if w.bans[part.Content()] {
			return RolledBackError{Namespace: tenantOf(part), Bundles: part.IDs()}
		}
	}
	return nil
}

// out counts a strike, and bans the bundles when it was the last one.
func (w *watchdog) out(part bundle.Set, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.strikes == nil {
		w.strikes, w.bans = map[string][]time.Time{}, map[string]bool{}
	}
	for revision, all := range w.strikes {
		w.strikes[revision] = slices.DeleteFunc(all, func(at time.Time) bool { return now.Sub(at) >= forgiveAfter })
		if len(w.strikes[revision]) == 0 {
			delete(w.strikes, revision)
		}
	}
	revision := part.Content()
	if w.strikes[revision] = append(w.strikes[revision], now); len(w.strikes[revision]) < Strikes {
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
	recovery.Go("engine", func() {
		defer e.watch.release()
		stuck := false
		select {
		case <-ev.done:
		case <-time.After(e.grace):
			stuck = true
		}
		if guilty := e.judge(s, ev, stuck); len(guilty) > 0 {
			e.strike(s, guilty, ev.ask, stuck)
		}
	}, nil)
}

// judge finds the bundles that are to blame: a tenant's own, canaries, or the
// platform's. A processor that was taken away makes good policies late too, so
// the question is asked again, with the suspected bundles and without: only when
// there is no answer with them and one without are they to blame. Those who may
// say least are suspected first, and are out of the way when the next ones are,
// so that a tenant cannot have a canary rolled back, nor a canary the bundle
// that it is to replace.
func (e *Engine) judge(s *Snapshot, ev *evaluation, stuck bool) (guilty bundle.Set) {
	ns := ev.ask.subject.Namespace
	with, rest, own := ev.query.view, s.set, owned(s.set, ns)
	if ev.query.tenant == "" { // they took no part
		rest, own = less(rest, own), nil
	}
	for _, part := range []bundle.Set{own, s.set.Canaries(ns), s.set.Of("")} {
		if len(part) == 0 {
			continue
		}
		rest = less(rest, part)
		without, err := e.aside(s, rest.For(ns))
		if err != nil {
			return nil // it is not known what would be without them
		}
		if e.answers(without, ev) {
			if stuck || !e.answers(with, ev) {
				return part
			}
			return nil
		}
		with, stuck = without, true // these have just had their second chance
	}
	return nil
}

// owned are the bundles that a namespace's own people wrote, if it is one.
func owned(set bundle.Set, namespace string) bundle.Set {
	if namespace == "" {
		return nil
	}
	return set.Of(namespace)
}

// less is a set without some of its bundles.
func less(set, part bundle.Set) bundle.Set {
	return slices.DeleteFunc(slices.Clone(set), func(b *bundle.Bundle) bool { return slices.Contains(part, b) })
}

// aside is what would decide if only these bundles did, from what is compiled
// already if it can be.
func (e *Engine) aside(s *Snapshot, set bundle.Set) (*view, error) {
	all := append(bundle.Set{e.builtin}, set...)
	for _, from := range []*Snapshot{s, e.base} {
		if v, ok := from.compiled()[all.Content()]; ok {
			return v, nil
		}
	}
	return newView(context.Background(), all)
}

// answers asks again and says whether an answer, of any kind, came in time.
// That no policy defines the point is an answer.
func (e *Engine) answers(v *view, ev *evaluation) bool {
	ctx := context.Background()
	q, err := v.query(ctx, ev.ask.name)
	if err != nil || !q.defined {
		return true
	}
	again := *ev.ask
	again.judging = true
	again.answer = func(ast.Value, string) error { return nil }
	retry := newEvaluation(q, ev.input, &again)
	if outcome, _ := e.run(ctx, retry); outcome == decision.TimedOut && !retry.late {
		return true // it did not even begin: no bundle is to blame
	}
	return !retry.late
}

// strike counts a failure of some bundles, and at the third goes on without.
func (e *Engine) strike(s *Snapshot, guilty bundle.Set, ask *question, stuck bool) {
	to := e.retreat(s, guilty)
	if to == nil {
		return
	}
	how := "took longer than " + ask.budget.String()
	if stuck {
		how = "did not end within " + ask.budget.String()
	}
	r := Rollback{
		From: s.revision, To: to.revision, Namespace: tenantOf(guilty), Canary: guilty[0].Canary != nil, Bundles: guilty.IDs(), Point: ask.name,
		Reason: fmt.Sprintf("%d decisions within an hour, the last one of %s, %s with these bundles, and were made in time without them", Strikes, ask.name, how),
	}
	e.each(func(o Observer) { o.RolledBack(r); o.Activated(to.revision) })
	e.checkScopes(to)
	e.emit(decision.Record{
		ID: e.lastID.Add(1), Time: e.clock(), Point: RollbackPoint, Outcome: decision.TimedOut,
		Subject:  decision.Subject{Kind: "Revision", Namespace: r.Namespace, Name: s.revision},
		Revision: to.revision, Bundles: r.Bundles, Output: r, Error: r.Reason,
	})
}

// RollbackPoint is the point that the record of a rollback names. No caller asks it.
const RollbackPoint decision.Name = "engine/rollback"

// retreat goes on without the bundles once the strikes are out: a tenant's and
// canaries are dropped, the platform's are replaced by the ones before.
func (e *Engine) retreat(s *Snapshot, guilty bundle.Set) *Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.active.Load() != s || !e.watch.out(guilty, e.clock()) {
		return nil // another is active by now, or it may try again
	}
	to := e.without(s, guilty)
	e.active.Store(to)
	return to
}

func (e *Engine) without(s *Snapshot, guilty bundle.Set) *Snapshot {
	rest := less(s.set, guilty)
	if tenantOf(guilty) == "" && guilty[0].Canary == nil {
		rest = append(rest, e.previous...)
		e.previous = nil
	}
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
