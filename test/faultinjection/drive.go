// SPDX-License-Identifier: Apache-2.0

package faultinjection

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// began is when all runs begin.
var began = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// run is one life of a controller.
type run struct {
	t        testing.TB
	scenario *Scenario
	store    *store
	injector *injector
	retrier  *requeue.Retrier
	events   *recorder
	now      time.Time

	due     map[reconcile.Request]time.Time
	rounds  int
	seen    snapshot
	changed time.Time // when the state changed last
	changes []time.Time
	err     error // of the last round
	// silent is a round in which a call failed, and which returned no error, set no timer and logged nothing.
	silent string
	errors int  // logged
	told   bool // by Notify, in the current round
	mu     sync.Mutex
}

func newRun(t testing.TB, s *Scenario, choose func(Call, time.Time) Fault) *run {
	t.Helper()
	r := &run{t: t, scenario: s, now: began, changed: began, due: map[reconcile.Request]time.Time{}, events: &recorder{}}
	r.events.now = func() time.Time { return r.now }
	clock := func() time.Time { return r.now }
	r.store = newStore(t, s, clock)
	r.injector = &injector{store: r.store, choose: choose, watches: s.Watches}
	environment := Environment{Client: r.injector.newClient(), Clock: clock, Events: r.events, Notify: func() { r.told = true }}
	r.retrier = requeue.NewRetrier(s.New(t, environment), nil, clock)
	r.seen = r.store.takeSnapshot(s.Watches)
	r.requestAll()
	return r
}

// runUntilQuiet calls the controller until nothing is due, or nothing has changed for long.
func (r *run) runUntilQuiet() {
	ctx := log.IntoContext(r.t.Context(), r.newLogger())
	limit := r.rounds + r.scenario.Rounds
	for {
		r.letOthersAct()
		req, at, ok := r.findNextRequest()
		if quiet := at.Sub(r.changed); !ok || quiet > r.scenario.Quiet && (r.err == nil || quiet > 2*r.scenario.Quiet) {
			return
		}
		if r.rounds >= limit {
			r.err = fmt.Errorf("it is still called after %d rounds, at %s; the last calls are\n%s", r.rounds, r.now.Sub(began), r.lastCalls())
			return
		}
		if at.After(r.now) {
			r.now = at
			r.letOthersAct()
		}
		r.runRound(ctx, req)
	}
}

// findNextRequest returns the request that is due first.
func (r *run) findNextRequest() (req reconcile.Request, at time.Time, ok bool) {
	for _, candidate := range r.scenario.Requests {
		if due, has := r.due[candidate]; has && (!ok || due.Before(at)) {
			req, at, ok = candidate, due, true
		}
	}
	return req, at, ok
}

// letOthersAct has others act until they have nothing to do, and events follow.
func (r *run) letOthersAct() {
	r.observeChanges(func() {
		r.scenario.Others(&Cluster{Client: r.store, Now: r.now, t: r.t})
		r.store.collectGarbage()
	})
}

// observeChanges has an event follow if something that is watched changes.
func (r *run) observeChanges(do func()) {
	before := r.seen
	do()
	r.seen = r.store.takeSnapshot(r.scenario.Watches)
	if r.seen.all != before.all {
		r.changed = r.now
		r.changes = append(r.changes, r.now)
	}
	if r.seen.watched != before.watched {
		r.requestAll()
	}
}

func (r *run) requestAll() {
	for _, req := range r.scenario.Requests {
		r.due[req] = r.now
	}
}

func (r *run) runRound(ctx context.Context, req reconcile.Request) {
	r.rounds++
	delete(r.due, req)
	before, logged, told := r.injector.failed, r.errors, len(r.events.listEvents())
	r.injector.late = false
	made := len(r.injector.listCalls())
	r.observeChanges(func() {
		result, err := r.retrier.Reconcile(ctx, req)
		r.err = err
		switch {
		case err != nil:
			r.due[req] = r.now.Add(r.retrier.When(req))
		case result.RequeueAfter > 0:
			r.retrier.Forget(req)
			r.due[req] = r.now.Add(result.RequeueAfter)
		default:
			r.retrier.Forget(req)
		}
		if r.injector.failed > before && err == nil && result.RequeueAfter == 0 && r.errors == logged && len(r.events.listEvents()) == told {
			r.silent = fmt.Sprintf("round %d returned no error and set no timer, of\n%s", r.rounds, describeCalls(r.injector.listCalls()[made:]))
		}
	})
	if r.injector.late || r.told {
		r.told = false
		r.requestAll()
	}
}

func (r *run) lastCalls() string {
	calls := r.injector.listCalls()
	return describeCalls(calls[max(0, len(calls)-12):])
}

func describeCalls(calls []Call) string {
	var out []string
	for _, c := range calls {
		out = append(out, "  "+c.String())
	}
	return strings.Join(out, "\n")
}

// newLogger makes a logger that counts the errors that are logged.
func (r *run) newLogger() logr.Logger {
	return funcr.New(func(_, args string) {
		if strings.Contains(args, `"error"=`) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.errors++
		}
	}, funcr.Options{})
}

// recorder keeps events.
type recorder struct {
	now  func() time.Time
	mu   sync.Mutex
	said []recorded
}

// recorded is an event, and when it was recorded.
type recorded struct {
	text string
	at   time.Time
}

func (r *recorder) Event(_ runtime.Object, kind, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, recorded{kind + " " + reason + " " + message, r.now()})
}

func (r *recorder) Eventf(o runtime.Object, kind, reason, format string, args ...any) {
	r.Event(o, kind, reason, fmt.Sprintf(format, args...))
}

func (r *recorder) AnnotatedEventf(o runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	r.Event(o, kind, reason, fmt.Sprintf(format, args...))
}

func (r *recorder) listEvents() []recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.said)
}
