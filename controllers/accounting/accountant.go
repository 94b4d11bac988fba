// SPDX-License-Identifier: Apache-2.0

// Package accounting keeps PodUnavailableBudgets: it counts the pods that may become unavailable, and
// records each pod before a caller is allowed to disrupt it (PUB-03).
//
// The status of the budget in the API server is the only source of truth. A disruption is allowed only
// after the pod was recorded there, by a write that fails if another client wrote in between. A
// disruption is refused only by a status that was read after the request came in. So any number of
// accountants, whatever their caches hold, answer like a single one that takes one request after the
// other. What an accountant keeps in memory only saves reads and conflicts.
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

// Request asks whether a pod may become unavailable.
type Request struct {
	Asked  *protection.Asked
	Recent points.Recent
	// Pod is the pod as it is stored now.
	Pod *corev1.Pod
	// Aside is true if the request concerns no budget, but may concern rules of users.
	Aside bool
}

// Result is what was decided.
type Result struct {
	Output points.BudgetOutput
	Record decision.Record
	// Version is the resource version of the budget that the decision is based on, or of the write that
	// recorded the pod. It is empty without a budget.
	Version string
}

// Decide makes a decision of the point protection/budget.
type Decide func(context.Context, decision.Subject, points.BudgetInput) (points.BudgetOutput, decision.Record)

// NewEngineDecider returns a Decide that uses the active policies of an engine.
func NewEngineDecider(e *engine.Engine) Decide {
	return func(ctx context.Context, subject decision.Subject, in points.BudgetInput) (points.BudgetOutput, decision.Record) {
		return engine.Decide(ctx, e, points.BudgetPoint(), subject, in)
	}
}

// Accountant answers requests, and records the pods that it allows to be disrupted.
type Accountant struct {
	client         client.Client
	live           client.Reader
	decide         Decide
	now            func() time.Time
	resizeIsUpdate bool

	callers coalesce.Queue[types.NamespacedName, *ticket]

	mu    sync.Mutex
	own   map[types.NamespacedName]writtenBudget
	pods  map[types.UID]time.Time // recorded by this accountant, and when
	swept time.Time
}

// writtenBudget is a budget as this accountant wrote it last.
type writtenBudget struct {
	budget *policy.PodUnavailableBudget
	at     time.Time
}

// Option changes an Accountant.
type Option func(*Accountant)

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option { return func(l *Accountant) { l.now = now } }

// WithResizes sets whether budgets distinguish a resize that restarts no container from an update
// (gate InPlacePodVerticalScaling); they do if unset. Otherwise a budget that protects from updates
// protects from such a resize too.
func WithResizes(can bool) Option { return func(l *Accountant) { l.resizeIsUpdate = !can } }

// New makes an Accountant. The client may read from a cache; live must not.
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

// DecideRequest decides a request, and records the pod if it counts. Without an answer, because of an
// error or because ctx ended, the pod must not be disrupted.
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
