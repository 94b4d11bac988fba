// SPDX-License-Identifier: Apache-2.0

// Package ephemeraljob adds the containers of EphemeralJobs to pods that run (EJ-01 to EJ-05).
// Which pods get them next is a decision of the policies.
package ephemeraljob

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=ephemeraljobs,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=ephemeraljobs/status,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/ephemeralcontainers,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconciler works on one EphemeralJob at a time.
type Reconciler struct {
	reconcile.Deps
	reconcile.Reconciler

	memory *reconcile.Memory[memory]
	missed *reconcile.MissedEvents

	writes int
}

// memory is what is remembered of a job between reconciles.
type memory struct {
	// listed is true once the pods were read from the API server.
	listed bool
	// patched are the pods that have the containers, as the API server returned them, until
	// the cache shows them.
	patched map[types.UID]*corev1.Pod
	// refused are pods that did not get the containers: they come last, so that they do not delay the
	// others.
	refused map[types.UID]refusal
	// generation is the generation of the job that the refusals are for.
	generation int64
	// failed is the message of the last CreateFailed event.
	failed string
}

func newMemory() memory {
	return memory{patched: map[types.UID]*corev1.Pod{}, refused: map[types.UID]refusal{}}
}

// New makes a Reconciler.
func New(deps reconcile.Deps) *Reconciler {
	r := &Reconciler{
		Deps:   deps.WithDefaults(),
		memory: reconcile.NewMemory(newMemory, nil), writes: 32,
	}
	r.missed = reconcile.NewMissedEvents(kruise.EphemeralJobComponent, r.unfinishedRequests)
	r.Reconciler = reconcile.NewObjectReconciler(r.Deps, reconcile.ObjectFuncs[*kruise.EphemeralJob]{
		Reconcile: r.reconcileJob, Finalize: r.removeFinalizer, Forget: r.memory.ForgetObject,
	})
	return r
}

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	b := r.NewController(mgr, kruise.EphemeralJobComponent, r.missed).
		For(&kruise.EphemeralJob{}, builder.WithPredicates(reconcile.UserChanges())).
		Watches(&corev1.Pod{}, &podEvents{r})
	return r.CompleteController(b, r)
}

// removeFinalizer removes OpenKruise's finalizer from a job that is being deleted.
func (r *Reconciler) removeFinalizer(ctx context.Context, job *kruise.EphemeralJob) (time.Duration, error) {
	i := slices.Index(job.Finalizers, kruise.EphemeralContainersFinalizer)
	if i < 0 {
		return 0, nil
	}
	changed := job.DeepCopy()
	changed.Finalizers = slices.Delete(changed.Finalizers, i, i+1)
	if err := r.Client.Patch(ctx, changed, client.MergeFromWithOptions(job, client.MergeFromWithOptimisticLock{})); err != nil {
		return 0, fmt.Errorf("removing the finalizer of EphemeralJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	return 0, nil
}
