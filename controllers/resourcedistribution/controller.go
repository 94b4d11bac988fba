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
	// newFor is how long a namespace counts as new: there is most likely no copy in it.
	newFor = time.Minute
	// recheckConfigMaps is how long the manager relies on what it knows of a ConfigMap, beside the watch.
	recheckConfigMaps = 5 * time.Minute
	// recheckSecrets is how long it relies on what it knows of a Secret. Secrets are not watched, since a watch would need
	// the permission to read all of them. A change that another client makes is put right within a minute.
	recheckSecrets = 40 * time.Second
	// heldAgain is how soon a policy that holds is asked again.
	heldAgain = 10 * time.Second
	// mostLeftovers bounds how many namespaces that have no copy are searched for one in a
	// row, so that those that have one come first.
	mostLeftovers = 100
	// writes is how many requests of a distribution are under way at once.
	writes = 10
)

// Reconciler works on one ResourceDistribution at a time.
type Reconciler struct {
	reconcile.Deps

	known  known
	memory *reconcile.Memory[memory]
}

// memory is what is remembered of a distribution.
type memory struct {
	told string // by the last event
}

// New makes a Reconciler.
func New(deps reconcile.Deps) *Reconciler {
	r := &Reconciler{Deps: deps.WithDefaults()}
	r.memory = reconcile.NewMemory(func() memory { return memory{} }, r.known.forgetDistribution)
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
	r.memory.GetOrCreate(d) // what is known of its copies is dropped with it
	want, err := newTemplate(d)
	if err != nil { // admission refuses it, so it was stored before there was one
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

// resultOf is when a distribution is looked at again, also beside the error of its status. A conflict and a missing namespace are
// no reason to try again: an event comes when they change (RD-03).
func resultOf(found *failures, left bool, after time.Duration, written error) (reconcile.Result, error) {
	if left {
		after = time.Second
	}
	return reconcile.Result{RequeueAfter: after}, errors.Join(found.retryError(), written)
}

// recordEventOnce records an event, once for each change of what it says.
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
	if f.of[kind][0] == namespace { // whichever fails first, so that the status comes to rest
		f.why[kind] = err.Error()
	}
	switch kind {
	case kruise.ResourceDistributionConflictOccurred, kruise.ResourceDistributionNamespaceNotExists:
	default:
		f.errs = append(f.errs, fmt.Errorf("namespace %s: %w", namespace, err))
	}
}

// retryError is what the work queue is to try again, the first errors of many.
func (f *failures) retryError() error { return errors.Join(f.errs[:min(len(f.errs), 3)]...) }
