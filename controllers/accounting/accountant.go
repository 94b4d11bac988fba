// SPDX-License-Identifier: Apache-2.0

// Package accounting keeps PodUnavailableBudgets: it counts the pods that may become
// unavailable and records them before a caller gets leave for them
// (PUB-03).
//
// The one truth is the status of the budget in the API server. A pod is let go only
// after it was recorded there, by a write that fails if another client wrote since;
// it is refused only by what was read there after it was asked about. So any number
// of ledgers, whatever their caches say, answer as one that takes one question
// after the other. What a ledger keeps in memory only saves reads and conflicts.
package accounting

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/coalesce"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
)

// Request is whether a pod may become unavailable.
type Request struct {
	Asked  *protection.Asked
	Recent points.Recent
	// Pod is as it is stored now.
	Pod *corev1.Pod
	// Aside is true where no budget is concerned, but rules of users may be.
	Aside bool
}

// Result is what was decided.
type Result struct {
	Output points.BudgetOutput
	Record decision.Record
	// Version is the resource version of the budget that it was decided by, or that
	// it was recorded as. It is empty without a budget.
	Version string
}

// Decide makes the decision protection/budget.
type Decide func(context.Context, decision.Subject, points.BudgetInput) (points.BudgetOutput, decision.Record)

// NewEngineDecider decides by the active policies of an engine.
func NewEngineDecider(e *engine.Engine) Decide {
	return func(ctx context.Context, subject decision.Subject, in points.BudgetInput) (points.BudgetOutput, decision.Record) {
		return engine.Decide(ctx, e, points.BudgetPoint(), subject, in)
	}
}

// Accountant answers questions.
type Accountant struct {
	client         client.Client
	live           client.Reader
	decide         Decide
	now            func() time.Time
	resizeIsUpdate bool

	callers coalesce.Queue[types.NamespacedName, *ticket]

	mu    sync.Mutex
	own   map[types.NamespacedName]writtenBudget
	pods  map[types.UID]time.Time // recorded by this ledger, and when
	swept time.Time
}

// writtenBudget is a budget as this ledger wrote it last.
type writtenBudget struct {
	budget *policy.PodUnavailableBudget
	at     time.Time
}

// Option changes a Ledger.
type Option func(*Accountant)

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option { return func(l *Accountant) { l.now = now } }

// WithResizes reports whether budgets tell a resize that restarts no container from an update (gate
// InPlacePodVerticalScaling), as they do if unset. Else who protects from updates protects from that.
func WithResizes(can bool) Option { return func(l *Accountant) { l.resizeIsUpdate = !can } }

// New makes a Ledger. The client may read from a cache; live must not.
func New(c client.Client, live client.Reader, decide Decide, opts ...Option) *Accountant {
	l := &Accountant{
		client: c, live: live, decide: decide, now: time.Now,
		own: map[types.NamespacedName]writtenBudget{}, pods: map[types.UID]time.Time{},
	}
	l.callers = coalesce.Queue[types.NamespacedName, *ticket]{Most: most, Patience: patience, Answer: l.answerBatch, Fail: failWaiting}
	for _, o := range opts {
		o(l)
	}
	return l
}

// DecideRequest decides, and records the pod if it counts. Without an answer, because of an
// error or because ctx ended, the pod must stay.
func (l *Accountant) DecideRequest(ctx context.Context, q Request) (Result, error) {
	name := availability.BudgetName(q.Pod)
	if name == "" || q.Aside {
		return l.decideWithoutBudget(ctx, q), nil
	}
	key := types.NamespacedName{Namespace: q.Pod.Namespace, Name: name}
	t := &ticket{ctx: ctx, question: q, done: make(chan struct{})}
	l.callers.EnqueueCaller(key, t)
	select {
	case <-t.done:
		return t.answer, t.err
	case <-ctx.Done():
		return Result{}, fmt.Errorf("asking PodUnavailableBudget %s: %w", key, ctx.Err())
	}
}

func (l *Accountant) decideWithoutBudget(ctx context.Context, q Request) Result {
	in := l.buildInput(q, nil, false)
	out, rec := l.decide(ctx, q.Asked.Subject(), in)
	return Result{Output: clampOutput(in, out), Record: rec}
}
