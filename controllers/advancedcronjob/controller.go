// SPDX-License-Identifier: Apache-2.0

// Package advancedcronjob starts Jobs, BroadcastJobs and ImageListPullJobs at given times
// (ACJ-01 to ACJ-05). Whether a run that is due starts is a decision of the policies.
package advancedcronjob

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	crecovery "github.com/regatta-sh/regatta/controllers/recovery"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/step"
	"github.com/regatta-sh/regatta/engine"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=advancedcronjobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=advancedcronjobs/status,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=advancedcronjobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=broadcastjobs;imagelistpulljobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconciler works on one AdvancedCronJob at a time.
type Reconciler struct {
	client client.Client
	live   client.Reader
	events record.EventRecorder
	engine *engine.Engine
	rounds *explain.Store

	memory *step.Memory[memory]
	frame  step.Frame[*kruise.AdvancedCronJob]

	kicks   <-chan event.GenericEvent
	now     func() time.Time
	workers int
	limiter workqueue.TypedRateLimiter[reconcile.Request]
}

// memory is what is known of an object between its steps. Nothing depends on it but which
// events are recorded.
type memory struct {
	recorded step.RecordedEvents
	// ended are the jobs whose end was recorded.
	ended map[types.UID]bool
}

// Option changes a Reconciler.
type Option func(*Reconciler)

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option { return func(r *Reconciler) { r.now = now } }

// WithWorkers sets how many objects are reconciled at once; 3 if unset.
func WithWorkers(n int) Option { return func(r *Reconciler) { r.workers = n } }

// WithRounds sets where explanations are kept.
func WithRounds(s *explain.Store) Option { return func(r *Reconciler) { r.rounds = s } }

// WithKicks has all objects reconciled at an event, such as that other policies decide.
func WithKicks(kicks <-chan event.GenericEvent) Option {
	return func(r *Reconciler) { r.kicks = kicks }
}

// WithRateLimiter sets how fast objects that failed are tried again.
func WithRateLimiter(l workqueue.TypedRateLimiter[reconcile.Request]) Option {
	return func(r *Reconciler) { r.limiter = l }
}

// New makes a Reconciler. The client's cache must have the index of Index.
func New(c rollout.Clients, e *engine.Engine, opts ...Option) *Reconciler {
	r := &Reconciler{
		client: c.Client, live: c.Live, events: c.Events, engine: e, rounds: explain.NewStore(), now: time.Now, workers: 3,
	}
	for _, opt := range opts {
		opt(r)
	}
	r.memory = step.NewMemory(func() memory { return memory{ended: map[types.UID]bool{}} }, func(uid types.UID) { r.rounds.ForgetWorkload(string(uid)) })
	r.frame = step.Frame[*kruise.AdvancedCronJob]{
		Kind: "AdvancedCronJob", New: func() *kruise.AdvancedCronJob { return &kruise.AdvancedCronJob{} }, Take: r.reconcileJob, Gone: r.memory.ForgetObject,
		Report: func(ctx context.Context, job *kruise.AdvancedCronJob, err error) error {
			return failure.Write(ctx, r.client, job, func(job *kruise.AdvancedCronJob) any { return &job.Status }, err, r.now())
		},
	}
	return r
}

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr)
	if r.kicks != nil {
		b = b.WatchesRawSource(source.Channel(r.kicks, handler.EnqueueRequestsFromMapFunc(crecovery.WrapMapFunc("advancedcronjob", r.allRequests))))
	}
	b = b.Named(kruise.AdvancedCronJobComponent).
		For(&kruise.AdvancedCronJob{}, builder.WithPredicates(rollout.UserChanges()))
	for _, o := range []client.Object{&batchv1.Job{}, &kruise.BroadcastJob{}, &kruise.ImageListPullJob{}} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, o, rollout.OwnerIndex, rollout.OwnerUID); err != nil {
			return fmt.Errorf("indexing %T by owner: %w", o, err)
		}
		b = b.Watches(o, handler.EnqueueRequestsFromMapFunc(ownerRequests))
	}
	return requeue.CompleteController(b, controller.Options{MaxConcurrentReconciles: r.workers, RateLimiter: r.limiter}, r)
}

// OwnsObject reports whether an object was started by an AdvancedCronJob.
func OwnsObject(o client.Object) bool {
	ref := metav1.GetControllerOfNoCopy(o)
	return ref != nil && ref.Kind == "AdvancedCronJob" && schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group == kruise.GroupVersion.Group
}

func ownerRequests(_ context.Context, o client.Object) []reconcile.Request {
	if !OwnsObject(o) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: metav1.GetControllerOfNoCopy(o).Name}}}
}

func (r *Reconciler) allRequests(ctx context.Context, _ client.Object) []reconcile.Request {
	return step.ListRequests(ctx, r.client, &kruise.AdvancedCronJobList{}, step.AllObjects[*kruise.AdvancedCronJob])
}

// Reconcile takes one object a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return r.frame.Reconcile(ctx, r.client, req)
}

// recordEventOnce records an event of a reason unless the last one of that reason said the same.
func (r *Reconciler) recordEventOnce(job *kruise.AdvancedCronJob, kind, reason, message string) {
	r.memory.GetOrCreate(job).recorded.RecordOnce(r.events, job, kind, reason, message)
}
