// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// Strikes is after how many late decisions a bundle is rolled back: on a busy machine good bundles are
// late now and then.
const Strikes = 3

// forgiveAfter is how long a strike counts: bundles may be active for months.
const forgiveAfter = time.Hour

// watchdog records when single bundles caused late decisions, by their content, so that a bundle has
// no strikes of an earlier revision.
type watchdog struct {
	mu      sync.Mutex
	busy    bool // a case is being judged
	strikes map[content][]time.Time
	bans    map[content]bool
}

// content identifies a bundle by its content and its owner. A canary has the same content as the
// promoted bundle.
type content struct {
	kind bundle.Kind
	id   string
}

func contentOf(b *bundle.Bundle) content { return content{b.Kind, b.ID()} }

// Rollback says which bundles the engine rolled back, and why.
type Rollback struct {
	// From and To are revisions of the engine.
	From, To string
	// Namespace is the namespace of the bundles' tenant; empty for bundles of the platform.
	Namespace string
	// Canary is true if they are the platform's canaries.
	Canary bool
	// Bundles are the bundles that were rolled back, as name@revision.
	Bundles []string
	// Replacements are the bundles that decide in their place from now on: the previous revision of a
	// bundle of the platform, or the bundle that a canary replaced.
	Replacements []string
	// Withheld are those of Bundles that nothing replaces. A decision that they take part in gets the
	// strictest answer of its point, until they are changed or deleted.
	Withheld []string
	// Point is the point of the last late decision, and Points are the points that Withheld take part in.
	Point  decision.Name
	Points []decision.Name
	Reason string
}

// RolledBackError refuses bundles that the watchdog rolled back before.
type RolledBackError struct {
	// Bundles are the refused bundles, as name@revision; a tenant's as namespace/name@revision. Other
	// bundles of the set are not refused.
	Bundles []string
}

func (err RolledBackError) Error() string {
	return fmt.Sprintf("%s: decisions did not end in time with it, so it was rolled back; change it to try again", strings.Join(bundle.ShortIDs(err.Bundles), ", "))
}

// checkRolledBack finds the deciding bundles of a set that were rolled back.
func (w *watchdog) checkRolledBack(set bundle.Set) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out bundle.Set
	for _, b := range set.WithoutWithheld() {
		if w.bans[contentOf(b)] {
			out = append(out, b)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return RolledBackError{Bundles: slices.Compact(out.IDs())}
}

// countStrike counts a strike against a bundle. If that was the last strike, it bans the bundle and
// returns true.
func (w *watchdog) countStrike(b *bundle.Bundle, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.strikes == nil {
		w.strikes, w.bans = map[content][]time.Time{}, map[content]bool{}
	}
	for c, all := range w.strikes {
		w.strikes[c] = slices.DeleteFunc(all, func(at time.Time) bool { return now.Sub(at) >= forgiveAfter })
		if len(w.strikes[c]) == 0 {
			delete(w.strikes, c)
		}
	}
	c := contentOf(b)
	if w.strikes[c] = append(w.strikes[c], now); len(w.strikes[c]) < Strikes {
		return false
	}
	delete(w.strikes, c)
	w.bans[c] = true
	return true
}

// forgetBundle drops the strikes and bans of a bundle with any content.
func (w *watchdog) forgetBundle(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	is := func(c content) bool { return strings.HasPrefix(c.id, id+"@") }
	maps.DeleteFunc(w.strikes, func(c content, _ []time.Time) bool { return is(c) })
	maps.DeleteFunc(w.bans, func(c content, _ bool) bool { return is(c) })
}

// claimInvestigation makes the caller the only one that investigates.
func (w *watchdog) claimInvestigation() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.busy
	w.busy = true
	return !was
}

func (w *watchdog) releaseInvestigation() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
}

// investigateLate investigates a late decision in the background. Until it is known which bundles
// caused it, and how often, all of them stay active, and such a decision gets the strictest answer.
func (e *Engine) investigateLate(s *Snapshot, ev *evaluation) {
	if len(s.set) == 0 || !e.watch.claimInvestigation() {
		return
	}
	recovery.Go("engine", func() {
		defer e.watch.releaseInvestigation()
		stuck := false
		select {
		case <-ev.done:
		case <-time.After(e.grace):
			stuck = true
		}
		if len(ev.guilty) == 0 { // it may be investigated again while it does not end
			ev.guilty = e.findGuilty(s, ev, stuck)
		}
		if len(ev.guilty) > 0 {
			e.strikeBundles(ev.guilty, ev.ask, stuck)
		}
	}, nil)
}

// findGuilty finds the faulty ones among the bundles that took part in an evaluation.
func (e *Engine) findGuilty(s *Snapshot, ev *evaluation, stuck bool) bundle.Set {
	set, namespace := s.set, ev.ask.subject.Namespace
	if ev.query.tenant == "" { // those of the namespace took no part
		set = withoutBundles(set, ownBundles(set, namespace))
	}
	return findFaultyBundles(set, namespace, e.oldestFirst, e.newRetrial(s, ev), stuck)
}

// strikeBundles counts a strike for each of some bundles, and rolls back a bundle at its third strike.
func (e *Engine) strikeBundles(guilty bundle.Set, ask *decisionRequest, stuck bool) {
	r, to := e.rollBackBundles(guilty)
	if to == nil {
		return
	}
	how := "took longer than " + ask.budget.String()
	if stuck {
		how = "did not end within " + ask.budget.String()
	}
	r.Point = ask.name
	r.Reason = fmt.Sprintf("%d decisions within an hour, the last one of %s, %s with these bundles, and were made in time without them", Strikes, ask.name, how)
	e.notifyObservers(func(o Observer) { o.RolledBack(r) })
	e.reportActive(to)
	e.checkScopes(to)
	e.emitRecord(decision.Record{
		ID: e.lastID.Add(1), Time: e.clock(), Point: RollbackPoint, Outcome: decision.TimedOut,
		Subject:  decision.Subject{Kind: "Revision", Namespace: r.Namespace, Name: r.From},
		Revision: r.To, Bundles: r.Bundles, Output: r, Error: r.Reason,
	})
}

// RollbackPoint is the point in the record of a rollback. No caller decides it.
const RollbackPoint decision.Name = "engine/rollback"

// rollBackBundles rolls back those of the bundles that have all their strikes. The snapshot is nil if
// there are none: strikes may have expired, or the bundles were changed meanwhile.
func (e *Engine) rollBackBundles(guilty bundle.Set) (Rollback, *Snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	from := e.active.Load()
	out := map[content]bool{}
	for _, b := range guilty {
		active := slices.ContainsFunc(from.set.WithoutWithheld(), func(a *bundle.Bundle) bool { return contentOf(a) == contentOf(b) })
		if active && e.watch.countStrike(b, e.clock()) {
			out[contentOf(b)] = true
		}
	}
	if len(out) == 0 {
		return Rollback{}, nil
	}
	r := Rollback{From: from.revision, Namespace: guilty[0].Namespace, Canary: guilty[0].Canary != nil}
	for _, before := range []map[string]*bundle.Bundle{e.lineage.before, nil} {
		next, change := e.replaceBundles(from.set, out, before)
		// A replacement may not compile with the current bundles, for example if another one has its package
		// by now. The withheld bundles themselves still compile.
		to, err := e.CompileBundles(context.Background(), next)
		if err != nil {
			continue
		}
		e.lineage.recordSet(from.set, next)
		e.active.Store(to)
		r.To, r.Bundles, r.Replacements, r.Withheld = to.revision, change.out.IDs(), change.in.IDs(), change.withheld.IDs()
		r.Points = e.pointsWithheld(to, change.withheld)
		return r, to
	}
	return Rollback{}, nil
}

// change is the change of a set by a rollback.
type change struct{ out, in, withheld bundle.Set }

// replaceBundles removes bundles from a set, by their content, and leaves all others unchanged. The
// bundle that a canary replaced decides again, as does the previous revision of a bundle of the
// platform. Without either the bundle stays in the set, withheld: decisions that it takes part in must
// not become looser.
func (e *Engine) replaceBundles(set bundle.Set, out map[content]bool, before map[string]*bundle.Bundle) (next bundle.Set, c change) {
	for _, b := range set {
		if b.Withheld || !out[contentOf(b)] {
			next = append(next, b)
			continue
		}
		c.out = append(c.out, b)
		replacement := before[b.Name]
		if b.Canary != nil {
			replacement = findStable(set, b.Name)
		}
		switch {
		case b.Kind == bundle.Tenant || replacement == nil || e.watch.checkRolledBack(bundle.Set{replacement}) != nil && b.Canary == nil:
			next, c.withheld = append(next, b.WithheldCopy()), append(c.withheld, b)
		case b.Canary != nil: // the bundle that the canary replaced is in the set
			c.in = append(c.in, replacement)
		default:
			next, c.in = append(next, replacement), append(c.in, replacement)
		}
	}
	return next, c
}

// findStable returns the bundle of the platform with a name that is no canary; nil if there is none.
func findStable(set bundle.Set, name string) *bundle.Bundle {
	for _, b := range set.OwnedBy("") {
		if b.Name == name {
			return b
		}
	}
	return nil
}
