package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/decision"
)

// strikes is how often a revision may be to blame for a decision that did not
// come in time.
const strikes = 3

// watchdog counts what a revision did.
type watchdog struct {
	mu      sync.Mutex
	busy    bool // a case is being judged
	strikes int
	bans    map[string]bool
}

// Rollback is a revision that was given up, and why.
type Rollback struct {
	From, To string
	Bundles  []string
	Point    decision.Name
	Reason   string
}

func (w *watchdog) banned(revision string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bans[revision]
}

// out counts a strike, and bans the revision when it was the last one.
func (w *watchdog) out(revision string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.strikes++; w.strikes < strikes {
		return false
	}
	if w.bans == nil {
		w.bans = map[string]bool{}
	}
	w.bans[revision] = true
	w.strikes = 0
	return true
}

func (w *watchdog) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.strikes = 0
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

// suspect looks, aside, into a decision that did not come in time. A processor
// that was taken away makes good policies late too, so the same question is
// asked again, of the built-in policies and of the ones suspected: only when the
// first answer and the second do not is the revision to blame.
func (e *Engine) suspect(s *Snapshot, ev *evaluation) {
	if len(s.set) == 0 || !e.watch.claim() {
		return
	}
	go func() {
		defer e.watch.release()
		// If it is stuck, it is told by not having ended when the grace is over.
		stuck := false
		select {
		case <-ev.done:
		case <-time.After(e.grace):
			stuck = true
		}
		if !e.answers(e.base, ev) || (!stuck && e.answers(s, ev)) {
			return
		}
		e.strike(s, ev.ask, stuck)
	}()
}

// answers asks again and says whether an answer, of any kind, came in time.
func (e *Engine) answers(s *Snapshot, ev *evaluation) bool {
	ctx := context.Background()
	q, err := s.view(ev.ask.subject).query(ctx, ev.ask.name)
	if err != nil || !q.defined {
		// Where only the suspect defines a point, nothing else is to blame.
		return s == e.base
	}
	again := *ev.ask
	again.answer = func(ast.Value, int, string) error { return nil }
	outcome, _ := e.run(ctx, newEvaluation(q, ev.input, &again))
	return outcome != decision.TimedOut
}

// strike counts a failure of a revision, and at the third goes back.
func (e *Engine) strike(s *Snapshot, ask *question, stuck bool) {
	to := e.retreat(s)
	if to == nil {
		return
	}
	how := "took longer than " + ask.budget.String()
	if stuck {
		how = "could not be stopped"
	}
	r := Rollback{
		From: s.revision, To: to.revision, Bundles: s.set.IDs(), Point: ask.name,
		Reason: fmt.Sprintf("%d decisions of %s %s where the built-in policies answered", strikes, ask.name, how),
	}
	e.each(func(o Observer) { o.RolledBack(r); o.Activated(to.revision) })
	e.emit(decision.Record{
		ID: e.lastID.Add(1), Time: e.clock(), Point: RollbackPoint, Outcome: decision.TimedOut,
		Subject:  decision.Subject{Kind: "Revision", Name: s.revision},
		Revision: to.revision, Bundles: r.Bundles, Output: r, Error: r.Reason,
	})
}

// RollbackPoint is the point that the record of a rollback names. Nobody asks it.
const RollbackPoint decision.Name = "engine/rollback"

// retreat goes back to the last good revision once the strikes are out.
func (e *Engine) retreat(s *Snapshot) *Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.active.Load() != s || !e.watch.out(s.revision) {
		return nil // another is active by now, or it may try again
	}
	to := e.previous
	if to == nil || e.watch.banned(to.revision) {
		to = e.base
	}
	e.previous = nil
	e.active.Store(to)
	return to
}
