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
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	crecovery "github.com/regatta-sh/regatta/controllers/recovery"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/step"
	"github.com/regatta-sh/regatta/engine"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=ephemeraljobs,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=ephemeraljobs/status,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/ephemeralcontainers,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconciler works on one EphemeralJob at a time.
type Reconciler struct {
	client client.Client
	live   client.Reader
	events record.EventRecorder
	engine *engine.Engine

	memory *step.Memory[memory]
	frame  step.Frame[*kruise.EphemeralJob]

	kicks   <-chan event.GenericEvent
	now     func() time.Time
	writes  int
	limiter workqueue.TypedRateLimiter[reconcile.Request]
}

// memory is what is known of a job between its steps.
type memory struct {
	// listed is true once the pods were read past the cache.
	listed bool
	// patched are the pods that have the containers, as the API server returned them, until
	// the cache shows them.
	patched map[types.UID]*corev1.Pod
	// refused are pods that did not get the containers: they come last, so that they keep no
	// other from its turn.
	refused map[types.UID]refusal
	// generation is that of the job which the refusals are for.
	generation int64
	// failed is the last CreateFailed that was recorded.
	failed string
}

func newMemory() memory {
	return memory{patched: map[types.UID]*corev1.Pod{}, refused: map[types.UID]refusal{}}
}

// Option changes a Reconciler.
type Option func(*Reconciler)

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option { return func(r *Reconciler) { r.now = now } }

// WithKicks has all jobs reconciled at an event, such as that other policies decide.
func WithKicks(kicks <-chan event.GenericEvent) Option {
	return func(r *Reconciler) { r.kicks = kicks }
}

// WithRateLimiter sets how fast jobs that failed are tried again.
func WithRateLimiter(l workqueue.TypedRateLimiter[reconcile.Request]) Option {
	return func(r *Reconciler) { r.limiter = l }
}

// New makes a Reconciler.
func New(c rollout.Clients, e *engine.Engine, opts ...Option) *Reconciler {
	r := &Reconciler{
		client: c.Client, live: c.Live, events: c.Events, engine: e,
		memory: step.NewMemory(newMemory, nil), now: time.Now, writes: 32,
	}
	for _, opt := range opts {
		opt(r)
	}
	r.frame = step.Frame[*kruise.EphemeralJob]{
		Kind: "EphemeralJob", New: func() *kruise.EphemeralJob { return &kruise.EphemeralJob{} }, Take: r.reconcileJob, Ending: r.removeFinalizer, Gone: r.memory.ForgetObject,
	}
	return r
}

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr)
	if r.kicks != nil {
		b = b.WatchesRawSource(source.Channel(r.kicks, handler.EnqueueRequestsFromMapFunc(crecovery.WrapMapFunc("ephemeraljob", r.unfinishedRequests))))
	}
	b = b.Named(kruise.EphemeralJobComponent).
		For(&kruise.EphemeralJob{}, builder.WithPredicates(rollout.UserChanges())).
		Watches(&corev1.Pod{}, &podEvents{r})
	return requeue.CompleteController(b, controller.Options{MaxConcurrentReconciles: 10, RateLimiter: r.limiter}, r)
}

// Reconcile takes one job a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return r.frame.Reconcile(ctx, r.client, req)
}

// removeFinalizer lets a job go that OpenKruise has put its finalizer on.
func (r *Reconciler) removeFinalizer(ctx context.Context, job *kruise.EphemeralJob) (time.Duration, error) {
	i := slices.Index(job.Finalizers, kruise.EphemeralContainersFinalizer)
	if i < 0 {
		return 0, nil
	}
	changed := job.DeepCopy()
	changed.Finalizers = slices.Delete(changed.Finalizers, i, i+1)
	if err := r.client.Patch(ctx, changed, client.MergeFromWithOptions(job, client.MergeFromWithOptimisticLock{})); err != nil {
		return 0, fmt.Errorf("removing the finalizer of EphemeralJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	return 0, nil
}
