// Package cloneset runs CloneSets: it gathers facts, asks the rollout points
// what to do, does it, and reports (CS-01 to CS-23).
package cloneset

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/controllers/workload/overlay"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/rank"
)

// Reconciler brings CloneSets to what their specs say.
type Reconciler struct {
	client     client.Client
	live       client.Reader
	engine     *engine.Engine
	ranker     *rank.Ranker
	events     record.EventRecorder
	now        func() time.Time
	gates      Gates
	workers    int
	writes     int
	turn       time.Duration
	timeout    time.Duration
	excludePD  bool
	topology   *facts.Topology
	overlay    *overlay.Overlay
	classifier *inplace.Classifier
	updater    inplace.Updater
	states     lifecycle.Writer
	leaks      func(namespace, name string)
	budget     Budget
	rounds     *explain.Store
	kicks      <-chan event.GenericEvent
	limiter    workqueue.TypedRateLimiter[reconcile.Request]

	mu   sync.Mutex
	sets map[types.NamespacedName]*memory
}

// Option changes a Reconciler.
type Option func(*Reconciler)

// WithGates sets the feature gates.
func WithGates(g Gates) Option { return func(r *Reconciler) { r.gates = g } }

// WithWorkers sets how many CloneSets are reconciled at once; 3 if unset.
func WithWorkers(n int) Option { return func(r *Reconciler) { r.workers = n } }

// WithParallelWrites bounds the API writes one reconcile has under way; 32 if
// unset.
func WithParallelWrites(n int) Option { return func(r *Reconciler) { r.writes = n } }

// WithTurn sets for how long one reconcile goes on beginning writes before others
// have their turn; 500 ms if unset.
func WithTurn(d time.Duration) Option { return func(r *Reconciler) { r.turn = d } }

// WithExpectationTimeout sets how long the cache may take to show a write; 5
// minutes if unset.
func WithExpectationTimeout(d time.Duration) Option { return func(r *Reconciler) { r.timeout = d } }

// WithExcludePreparingDelete leaves pods in PreparingDelete out of the replicas
// of every CloneSet.
func WithExcludePreparingDelete(b bool) Option { return func(r *Reconciler) { r.excludePD = b } }

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option { return func(r *Reconciler) { r.now = now } }

// WithLeaks is told of every CloneSet whose writes the cache does not show in
// time.
func WithLeaks(f func(namespace, name string)) Option { return func(r *Reconciler) { r.leaks = f } }

// WithRounds keeps what each round decided, for explanations.
func WithRounds(s *explain.Store) Option { return func(r *Reconciler) { r.rounds = s } }

// WithKicks has all CloneSets reconciled at each event, for policies that change.
func WithKicks(c <-chan event.GenericEvent) Option { return func(r *Reconciler) { r.kicks = c } }

// WithRateLimiter sets how fast CloneSets that failed are tried again.
func WithRateLimiter(l workqueue.TypedRateLimiter[reconcile.Request]) Option {
	return func(r *Reconciler) { r.limiter = l }
}

// New makes a Reconciler. live reads past the cache.
func New(c client.Client, live client.Reader, e *engine.Engine, recorder record.EventRecorder, opts ...Option) *Reconciler {
	r := &Reconciler{
		client: c, live: live, engine: e, ranker: rank.New(e), events: recorder, now: time.Now,
		workers: 3, writes: 32, turn: turn, timeout: 5 * time.Minute,
		topology: facts.NewTopology(), classifier: inplace.NewClassifier(),
		leaks: func(string, string) {}, sets: map[types.NamespacedName]*memory{},
		rounds: explain.NewStore(),
	}
	for _, o := range opts {
		o(r)
	}
	r.overlay = overlay.New(r.now)
	r.updater = inplace.Updater{Client: c, Live: live, Now: r.now, Refused: &inplace.Refusals{}}
	r.states = lifecycle.Writer{Client: c, Now: r.now}
	return r
}

// Reconcile does one round: refresh, then scale, and update only when scaling
// changed nothing (CS-04), then the status.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	set := &kruise.CloneSet{}
	err := r.client.Get(ctx, req.NamespacedName, set)
	if apierrors.IsNotFound(err) || (err == nil && set.DeletionTimestamp != nil) {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the CloneSet: %w", err)
	}
	m := r.memoryOf(set)
	w, err := r.gather(ctx, set, m)
	if conflict(err) && !m.persists(err) {
		return m.lost(ctx, err)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("gathering: %w", err)
	}
	if w.waiting {
		return reconcile.Result{RequeueAfter: w.again.after}, nil
	}
	actErr := r.act(ctx, w)
	if m.persists(actErr) {
		actErr = r.giveUpRacing(w, actErr)
	}
	if err := r.report(ctx, w, actErr); err != nil && actErr == nil {
		actErr = err
	}
	if actErr == nil {
		actErr = r.tidy(ctx, w)
	}
	// From here on w is only read.
	r.rounds.Put(w.subject(), newRound(w, r.engine))
	if conflict(actErr) {
		return m.lost(ctx, actErr)
	}
	return reconcile.Result{RequeueAfter: w.again.after}, actErr
}

// act does what is to be done. A pod that cannot go on with what it has begun
// keeps neither the others nor the rest of the round: it is what it was before.
func (r *Reconciler) act(ctx context.Context, w *world) error {
	d := w.diff(false)
	w.backwards, w.settled = d.Update < 0, (d.Surplus == 0 && !w.completes(d)) || w.onDelete()
	changed, err := r.refresh(ctx, w)
	if err != nil {
		err = &phaseError{kruise.CloneSetConditionFailedUpdate, fmt.Errorf("refreshing pods: %w", err)}
	}
	if changed {
		w.recount()
	}
	return errors.Join(err, r.move(ctx, w))
}

// move scales, and updates where that changed nothing (CS-04).
func (r *Reconciler) move(ctx context.Context, w *world) error {
	err := r.cleanClaims(ctx, w)
	acted := false
	if err == nil {
		acted, err = r.scale(ctx, w)
	}
	if err != nil {
		err = &phaseError{kruise.CloneSetConditionFailedScale, err}
		acted = !onlyCreates(err)
	}
	if acted {
		return err
	}
	// Pods that cannot be created keep no others from being updated: each counts as
	// unavailable, so only what maxUnavailable leaves room for is moved.
	if failed := r.update(ctx, w); failed != nil {
		err = errors.Join(err, &phaseError{kruise.CloneSetConditionFailedUpdate, failed})
	}
	return err
}

// phaseError is an error with the condition that reports it.
type phaseError struct {
	condition kruise.CloneSetConditionType
	err       error
}

func (e *phaseError) Error() string { return e.err.Error() }
func (e *phaseError) Unwrap() error { return e.err }
