// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	opametrics "github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// evaluation is one run of a query. All but stop and done belong to the
// goroutine that runs it until done is closed.
type evaluation struct {
	query   *query
	input   ast.Value
	ask     *decisionRequest
	results func(rego.ResultSet) // receives the results of a query with several
	rules   topdown.EvaluatedRuleTracker
	outcome decision.Outcome
	err     error

	started  bool            // these belong to the waiting goroutine
	late     bool            // it had its time, but did not end
	held     []chan struct{} // the slots that it holds; releaseSlots releases them
	released sync.Once
	revision string       // of the deciding policies
	share    *tenantShare // counts its time; nil if none does
	suspect  func()       // investigates that it does not end; nil if that does not count
	guilty   bundle.Set   // the bundles that made it late; belongs to the goroutine that holds the watchdog
	stop     evaluationBrake
	done     chan struct{}

	clock func() time.Time // the clock of the share
}

// evaluationBrake stops an evaluation. OPA checks it at every expression, and inside built-in
// functions that may take long.
type evaluationBrake struct{ pulled atomic.Bool }

func (b *evaluationBrake) Cancel()         { b.pulled.Store(true) }
func (b *evaluationBrake) Cancelled() bool { return b.pulled.Load() }

func newEvaluation(q *query, input ast.Value, ask *decisionRequest) *evaluation {
	return &evaluation{query: q, input: input, ask: ask, done: make(chan struct{})}
}

func (ev *evaluation) ruleLabels() []map[string]any { return ev.rules.Labels }

// releaseSlots releases the slots that the evaluation holds, once.
func (ev *evaluation) releaseSlots() {
	ev.released.Do(func() {
		for _, slots := range ev.held {
			<-slots
		}
	})
}

// evaluateQuery is called by a worker.
func (ev *evaluation) evaluateQuery() {
	defer close(ev.done)
	defer ev.releaseSlots()
	defer func() {
		if p := recover(); p != nil {
			ev.outcome, ev.err = decision.Failed, fmt.Errorf("evaluating: panic: %v", p)
		}
	}()
	if ev.stop.Cancelled() { // waited too long for a worker
		ev.outcome, ev.err = decision.TimedOut, errNoWorker
		return
	}
	if ev.share != nil {
		ev.share.beginEvaluation(ev)
		defer func() { ev.share.endEvaluation(ev, ev.clock()) }()
	}
	rs, err := ev.query.prepared.Eval(context.Background(),
		rego.EvalParsedInput(ev.input),
		rego.EvalTransaction(ev.query.txn),
		rego.EvalExternalCancel(&ev.stop),
		rego.EvalMetrics(opametrics.NoOp()),
		rego.EvalEvaluatedRuleTracker(&ev.rules),
	)
	switch {
	case err != nil && topdown.IsCancel(err):
		ev.outcome, ev.err = decision.TimedOut, err
	case err != nil:
		ev.outcome, ev.err = decision.Failed, fmt.Errorf("evaluating: %w", err)
	case ev.results != nil:
		ev.outcome = decision.Decided
		ev.results(rs)
	case len(rs) == 0 || len(rs[0].Expressions) == 0:
		ev.outcome, ev.err = decision.Undefined, fmt.Errorf("the policy has no answer for this input")
	default:
		ev.outcome = decision.Decided
		if err := ev.ask.answer(rs[0].Expressions[0].Value.(ast.Value), ev.query.path); err != nil {
			ev.outcome, ev.err = decision.Failed, fmt.Errorf("reading the answer of %s: %w", ev.ask.name, err)
		}
	}
}

var (
	errNoWorker = errors.New("no worker was free in time")
	errNoShare  = errors.New("no worker was free in time of those that the policies of a namespace may have at a time")
)

// requiredSlots returns the semaphores that an evaluation must acquire before it may ask for a worker.
func (e *Engine) requiredSlots(ev *evaluation) []chan struct{} {
	if ev.ask.judging { // a judging evaluation must not wait for those that it judges
		return []chan struct{}{e.shares.judging}
	}
	mine := e.shares.shareForTenant(ev.query.tenant)
	if mine == nil {
		return nil
	}
	if !ev.ask.aside {
		ev.share, ev.clock = mine, e.clock
	}
	return []chan struct{}{mine.slots, e.shares.all}
}

// sample is how often the memory of a long evaluation is checked.
const sample = 20 * time.Millisecond

// runEvaluation waits for an evaluation, but not longer than its budget.
func (e *Engine) runEvaluation(ctx context.Context, ev *evaluation) (decision.Outcome, error) {
	defer func() {
		if !ev.started {
			ev.releaseSlots()
		}
	}()
	memory := e.memory
	if ev.query.tenant != "" {
		memory /= 4
	}
	deadline := time.Now().Add(ev.ask.budget)
	stopped := processPause{left: mostStopped * ev.ask.budget}
	timer := time.NewTimer(stopped.expectTimer(min(sample, ev.ask.budget)))
	defer timer.Stop()
	var heap uint64
	gates := e.requiredSlots(ev)
	var gate chan<- struct{}
	var queue chan<- *evaluation
	next := func() {
		gate = nil
		if n := len(ev.held); n < len(gates) {
			gate = gates[n]
			return
		}
		queue = e.workers.dispatchQueue(ev)
	}
	next()
	for {
		select {
		case <-ev.done:
			return ev.outcome, ev.err
		case gate <- struct{}{}:
			ev.held = append(ev.held, gates[len(ev.held)])
			next()
		case queue <- ev:
			queue, ev.started = nil, true
		case <-ctx.Done():
			if ev.hasEnded() {
				return ev.outcome, ev.err
			}
			e.giveUp(ev)
			return decision.TimedOut, fmt.Errorf("the caller did not wait for the answer: %w", context.Cause(ctx))
		case <-timer.C:
			if ev.hasEnded() { // an existing answer is never too late
				return ev.outcome, ev.err
			}
			deadline = deadline.Add(stopped.takePausedTime())
			left := time.Until(deadline)
			if ev.started && ev.query.extended { // the built-in rules alone do not exceed the memory
				now := heapBytes()
				if heap == 0 {
					heap = now
				}
				if grown := now - heap; now > heap && grown > memory {
					ev.late = true
					e.giveUp(ev)
					return decision.TimedOut, fmt.Errorf("the evaluation was given up: memory grew by %d MiB meanwhile", grown>>20)
				}
			}
			if left <= 0 {
				if gate != nil {
					return decision.TimedOut, errNoShare
				}
				if !ev.started {
					return decision.TimedOut, errNoWorker
				}
				ev.late = true
				e.giveUp(ev)
				return decision.TimedOut, fmt.Errorf("no answer within %s", ev.ask.budget)
			}
			timer.Reset(stopped.expectTimer(min(sample, left)))
		}
	}
}

// hasEnded reports whether the evaluation has an answer.
func (ev *evaluation) hasEnded() bool {
	select {
	case <-ev.done:
		return true
	default:
		return false
	}
}

// processPause measures how long the process was stopped while a decision was awaited: a CPU limit
// stops it for the rest of each period once its quota is used up. That time does not count for a
// policy. It shows in timers that fire late.
type processPause struct {
	due  time.Time
	left time.Duration // how much time may still be added; an evaluation must end
}

// slack is how late a timer may fire on a machine that is merely busy.
const slack = 10 * time.Millisecond

// mostStopped bounds the added time, in budgets of the point: the chart's limit of a fifth of a
// processor stops the process for four times as long as it runs.
const mostStopped = 9

// expectTimer notes when a timer that is set for d is due.
func (s *processPause) expectTimer(d time.Duration) time.Duration {
	s.due = time.Now().Add(d)
	return d
}

// takePausedTime returns how long the process was stopped until the timer fired.
func (s *processPause) takePausedTime() time.Duration {
	late := time.Since(s.due)
	if late < slack {
		return 0
	}
	late = min(late, s.left)
	s.left -= late
	return late
}

// giveUp tells an evaluation to stop, and watches whether it does.
func (e *Engine) giveUp(ev *evaluation) {
	ev.stop.Cancel()
	if !ev.started {
		return
	}
	time.AfterFunc(e.grace, func() { _ = recovery.Call("engine", func() error { e.replaceStuck(ev); return nil }) })
}

func heapBytes() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// suspectAgain is after how many further grace periods a stuck evaluation is investigated again.
const suspectAgain = 10

// suspectStuck investigates an evaluation that does not end. Its policies may be active in another
// snapshot by now; if they are not active any more, there is nothing to do.
func (e *Engine) suspectStuck(s *Snapshot, ev *evaluation) {
	now := e.active.Load()
	if subject := ev.ask.subject; now.RevisionFor(subject) == s.RevisionFor(subject) {
		e.investigateLate(now, ev)
	}
}

// replaceStuck makes room for another worker while the evaluation does not end. It suspects the
// evaluation again and again. While an evaluation that does not end uses up the share of a namespace,
// all decisions of that namespace are fallbacks, so no other late decision might make it suspected.
func (e *Engine) replaceStuck(ev *evaluation) {
	select {
	case <-ev.done:
		return
	default:
	}
	e.workers.addStuckWorker()
	if ev.ask.judging {
		defer e.shares.keepRunning(ev)()
	}
	e.notifyObservers(func(o Observer) { o.EvaluationStuck(ev.ask.name, 1) })
	if ev.suspect != nil && !ev.late { // a late evaluation is suspected already
		ev.suspect()
	}
	again := time.NewTicker(max(suspectAgain*e.grace, time.Millisecond))
	defer again.Stop()
	for !ev.hasEnded() { // this goroutine waits as long as the stuck one runs
		select {
		case <-ev.done:
		case <-again.C:
			if ev.suspect != nil {
				ev.suspect()
			}
		}
	}
	e.workers.removeStuckWorker()
	e.notifyObservers(func(o Observer) { o.EvaluationStuck(ev.ask.name, -1) })
}
