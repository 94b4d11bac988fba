// SPDX-License-Identifier: Apache-2.0

// Package resourcedistribution keeps the copies of ResourceDistributions: one Secret or
// ConfigMap in each namespace that the spec asks for and no policy denies (RD-01 to RD-03).
//
// The manager has no permission to read Secrets of users. It reads a copy by a JSON patch
// that only tests whether the distribution owns the object, and changes nothing: the API
// server answers with the object if it does, and refuses if it does not.
package resourcedistribution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=resourcedistributions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=resourcedistributions/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=resourcedistributions/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

const (
	// newFor is how long a namespace counts as new: it most likely has no copy yet.
	newFor = time.Minute
	// recheckConfigMaps is how long the manager relies on what it remembers of a ConfigMap, which is watched as
	// well.
	recheckConfigMaps = 5 * time.Minute
	// recheckSecrets is how long it relies on what it remembers of a Secret. Secrets are not watched, since a watch would
	// need the permission to read all of them. A change by another client is reverted within a minute.
	recheckSecrets = 40 * time.Second
	// heldAgain is how soon a policy that holds is evaluated again.
	heldAgain = 10 * time.Second
	// mostLeftovers bounds how many namespaces without a known copy are searched in one reconcile, so that
	// namespaces that should have a copy come first.
	mostLeftovers = 100
	// writes is how many requests of a distribution are under way at once.
	writes = 10
)

// Reconciler works on one ResourceDistribution at a time.
type Reconciler struct {
	reconcile.Deps

	known  known
	memory *reconcile.Memory[memory]
	missed *reconcile.MissedEvents
}

// memory is what is remembered of a distribution.
type memory struct {
	told string // the text of the last event
}

// New makes a Reconciler.
func New(deps reconcile.Deps) *Reconciler {
	r := &Reconciler{Deps: deps.WithDefaults()}
	r.memory = reconcile.NewMemory(func() memory { return memory{} }, r.known.forgetDistribution)
	r.missed = reconcile.NewMissedEvents(controllerName, r.allRequests)
	return r
}

// Reconcile brings the copies and the status of one ResourceDistribution up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	d := &kruise.ResourceDistribution{}
	if err := r.ReadObject(ctx, req.NamespacedName, d); err != nil {
		if apierrors.IsNotFound(err) {
			r.memory.ForgetObject(req.NamespacedName)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("reading the ResourceDistribution: %w", err)
	}
	if d.DeletionTimestamp != nil { // the garbage collector deletes the copies
		r.memory.ForgetObject(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	r.memory.GetOrCreate(d) // the memory of its copies is dropped with it
	want, err := newTemplate(d)
	if err != nil { // admission refuses it, so it was stored without admission
		r.recordEventOnce(d, "InvalidResource", err.Error())
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	all := &corev1.NamespaceList{}
	if err := r.Client.List(ctx, all); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing namespaces: %w", err)
	}
	plan, err := r.decidePlan(ctx, d, want, all.Items)
	if err != nil {
		return reconcile.Result{}, err
	}
	if plan.held {
		return reconcile.Result{RequeueAfter: heldAgain}, nil
	}
	w := &work{r: r, d: d, want: want}
	found := w.ensureCopies(ctx, plan.matched, plan.there)
	left := w.deleteLeftovers(ctx, plan, found)
	written := r.patchStatus(ctx, d, plan, found)
	return resultOf(found, left, want.recheckAfter(), written)
}

// resultOf returns when to reconcile a distribution again, with the errors to retry. A conflict and a missing namespace are not
// retried: an event is received when they change (RD-03).
func resultOf(found *failures, left bool, after time.Duration, written error) (reconcile.Result, error) {
	if left {
		after = time.Second
	}
	return reconcile.Result{RequeueAfter: after}, errors.Join(found.retryError(), written)
}

// recordEventOnce records an event if its text differs from the last one.
func (r *Reconciler) recordEventOnce(d *kruise.ResourceDistribution, reason, message string) {
	text := reason + ": " + message
	m := r.memory.GetOrCreate(d)
	if m.told == text {
		return
	}
	m.told = text
	r.Events.Event(d, corev1.EventTypeWarning, reason, message)
}

// failures are the namespaces where something went wrong, by condition.
type failures struct {
	mu   sync.Mutex
	of   map[kruise.ResourceDistributionConditionType][]string
	why  map[kruise.ResourceDistributionConditionType]string
	errs []error
}

func newFailures() *failures {
	return &failures{of: map[kruise.ResourceDistributionConditionType][]string{}, why: map[kruise.ResourceDistributionConditionType]string{}}
}

func (f *failures) addFailure(kind kruise.ResourceDistributionConditionType, namespace string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of[kind] = append(f.of[kind], namespace)
	slices.Sort(f.of[kind])
	if f.of[kind][0] == namespace { // the first namespace that fails by name, so that the status is stable
		f.why[kind] = err.Error()
	}
	switch kind {
	case kruise.ResourceDistributionConflictOccurred, kruise.ResourceDistributionNamespaceNotExists:
	default:
		f.errs = append(f.errs, fmt.Errorf("namespace %s: %w", namespace, err))
	}
}

// retryError returns the error for the work queue to retry: the first few of many.
func (f *failures) retryError() error { return errors.Join(f.errs[:min(len(f.errs), 3)]...) }
