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
	results func(rego.ResultSet) // takes what the query answers, where it is not one answer
	rules   topdown.EvaluatedRuleTracker
	outcome decision.Outcome
	err     error

	started  bool            // these belong to the one who waits
	late     bool            // it had its time, and did not use it well
	held     []chan struct{} // what it has taken of shares; release gives it back
	released sync.Once
	revision string       // of what decides
	share    *tenantShare // counts its time; nil if none does
	suspect  func()       // has it looked into that it does not end; nil if it says nothing
	guilty   bundle.Set   // those to blame that it is late; of the goroutine that has claimed the watchdog
	stop     evaluationBrake
	done     chan struct{}

	clock func() time.Time // of the share
}

// evaluationBrake stops an evaluation. OPA looks at it at every expression, and inside
// those built-ins that take long.
type evaluationBrake struct{ pulled atomic.Bool }

func (b *evaluationBrake) Cancel()         { b.pulled.Store(true) }
func (b *evaluationBrake) Cancelled() bool { return b.pulled.Load() }

func newEvaluation(q *query, input ast.Value, ask *decisionRequest) *evaluation {
	return &evaluation{query: q, input: input, ask: ask, done: make(chan struct{})}
}

func (ev *evaluation) ruleLabels() []map[string]any { return ev.rules.Labels }

// releaseSlots gives back what was taken of shares, once.
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

// requiredSlots are what an evaluation must have a slot of before it may ask for a worker.
func (e *Engine) requiredSlots(ev *evaluation) []chan struct{} {
	if ev.ask.judging { // who judges must not wait for those who are judged
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

// sample is how often a long evaluation's memory is looked at.
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
			if ev.hasEnded() { // an answer that is there is never too late
				return ev.outcome, ev.err
			}
			deadline = deadline.Add(stopped.takePausedTime())
			left := time.Until(deadline)
			if ev.started && ev.query.extended { // the built-in rules alone do not explode
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

// processPause measures for how long the process did not run while a decision was waited
// for: a CPU limit stops it for the rest of each period once its quota is used up. No
// policy is late by that time. A timer that fires late shows it.
type processPause struct {
	due  time.Time
	left time.Duration // what may still be given back; an evaluation ends in any case
}

// slack is how late a timer may fire on a machine that is merely busy.
const slack = 10 * time.Millisecond

// mostStopped bounds what is given back, in budgets of the point: the chart's limit of a
// fifth of a processor stops the process for four times as long as it runs.
const mostStopped = 9

// expectTimer notes when a timer that is set for d is due.
func (s *processPause) expectTimer(d time.Duration) time.Duration {
	s.due = time.Now().Add(d)
	return d
}

// takePausedTime is for how long the process was stopped until the timer fired.
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

// suspectAgain is how many times the grace an evaluation goes on after it counted as
// stuck, until that is looked into once more.
const suspectAgain = 10

// suspectStuck looks into an evaluation that does not end. The policies that it is of may
// be active in another snapshot by now; if they decide no more there is nothing to do.
func (e *Engine) suspectStuck(s *Snapshot, ev *evaluation) {
	now := e.active.Load()
	if subject := ev.ask.subject; now.RevisionFor(subject) == s.RevisionFor(subject) {
		e.investigateLate(now, ev)
	}
}

// replaceStuck makes room for another worker while the evaluation does not end. It has it
// suspected again and again: the decisions of a namespace are fallbacks while one that
// does not end uses up its share, so that no other one might come late.
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
	if ev.suspect != nil && !ev.late { // who was late is suspected already
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
