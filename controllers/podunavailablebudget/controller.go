// SPDX-License-Identifier: Apache-2.0

// Package podunavailablebudget keeps the status of PodUnavailableBudgets: how many pods there should
// be, how many are available, and how many of them may become unavailable (PUB-04 to PUB-08). Package
// accounting decides whether a pod may, and subtracts it from that number.
package podunavailablebudget

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
)

// Namespaces are the namespaces whose requests about pods the API server sends to the webhooks.
type Namespaces interface {
	// CoverNamespace returns once the API server calls the webhooks for a namespace.
	CoverNamespace(ctx context.Context, namespace string) error
}

// Reconciler keeps the status of budgets.
type Reconciler struct {
	reconcile.Deps

	finder     *Finder
	workloads  *scale.Finder
	namespaces Namespaces
	writes     int
	// missed and missedLater make up for events whose budgets are enqueued at once, and after the time going.
	missed, missedLater *reconcile.MissedEvents

	mu     sync.Mutex
	told   map[types.NamespacedName]string // the last event of each budget
	checks map[types.UID]podCheck
	drops  map[types.NamespacedName]time.Time // when the cache dropped pods
}

// Option changes a Reconciler.
type Option func(*Reconciler)

// WithParallelWrites bounds the API writes one reconcile has under way; 16 if unset.
func WithParallelWrites(n int) Option { return func(r *Reconciler) { r.writes = n } }

// WithNamespaces sets n, whose Cover is called with the namespace of a budget before the budget has an effect.
func WithNamespaces(n Namespaces) Option { return func(r *Reconciler) { r.namespaces = n } }

// New makes a Reconciler.
func New(deps reconcile.Deps, finder *Finder, opts ...Option) *Reconciler {
	r := &Reconciler{
		Deps:   deps.WithDefaults(),
		finder: finder, workloads: finder.workloads, writes: 16,
		told: map[types.NamespacedName]string{}, checks: map[types.UID]podCheck{}, drops: map[types.NamespacedName]time.Time{},
	}
	for _, o := range opts {
		o(r)
	}
	r.missed = reconcile.NewMissedEvents(controllerName, r.allRequests)
	r.missedLater = r.missed.WithDelay(going)
	return r
}

// Reconcile brings the status of one budget up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	budget := &policy.PodUnavailableBudget{}
	err := r.Client.Get(ctx, req.NamespacedName, budget)
	if apierrors.IsNotFound(err) || err == nil && budget.DeletionTimestamp != nil {
		r.shouldReport(req.NamespacedName, "")
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the PodUnavailableBudget: %w", err)
	}
	w, err := r.gatherState(ctx, budget)
	if err != nil {
		if r.shouldReport(req.NamespacedName, err.Error()) {
			r.Events.Event(budget, corev1.EventTypeWarning, policy.BudgetCalculateExpectedPodFailReason, fmt.Sprintf("Failed to calculate the number of expected pods: %v", err))
		}
		return reconcile.Result{}, r.reportFailure(ctx, budget, err)
	}
	if len(w.active) > 0 {
		r.shouldReport(req.NamespacedName, "")
	} else if r.shouldReport(req.NamespacedName, policy.BudgetNoPodsReason) {
		r.Events.Event(budget, corev1.EventTypeNormal, policy.BudgetNoPodsReason, policy.BudgetNoPodsMessage)
	}
	next, err := r.computeStatus(ctx, w)
	if err != nil {
		return reconcile.Result{}, r.reportFailure(ctx, budget, err)
	}
	repaired := r.repairAnnotations(ctx, w)
	if failure.IsReported(repaired) { // a pod without the annotation is not protected
		failure.RecordFailure(r.Events, budget, repaired)
	}
	err = errors.Join(r.writeStatus(ctx, w, next), repaired)
	if isLostRace(err) {
		if again, ok := requeue.LoseRace(ctx, err); ok {
			return reconcile.Result{RequeueAfter: again}, nil
		}
	}
	return reconcile.Result{RequeueAfter: next.again}, err
}

// reportFailure writes to the status why it cannot be computed. The number of allowed disruptions stays as it
// was.
func (r *Reconciler) reportFailure(ctx context.Context, budget *policy.PodUnavailableBudget, cause error) error {
	if budget.Status.ObservedGeneration == 0 || !failure.IsReported(cause) { // a budget refuses requests from its first status on
		return cause
	}
	return errors.Join(cause, failure.Write(ctx, r.Client, budget, func(b *policy.PodUnavailableBudget) any { return &b.Status }, cause, r.Now()))
}

// shouldReport reports whether a report about a budget is new; an empty one never is.
func (r *Reconciler) shouldReport(key types.NamespacedName, what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if what == "" {
		delete(r.told, key)
		return false
	}
	news := r.told[key] != what
	r.told[key] = what
	return news
}

// isLostRace reports whether all errors are conflicts with other writes of an object.
func isLostRace(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if !isLostRace(e) {
				return false
			}
		}
		return true
	}
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}
