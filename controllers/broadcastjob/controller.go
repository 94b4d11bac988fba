// SPDX-License-Identifier: Apache-2.0

// Package broadcastjob runs the pods of BroadcastJobs: one to its end on each node that fits
// (BJ-01 to BJ-06). Which nodes are next is a decision of the policies.
package broadcastjob

import (
	"context"
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

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	crecovery "github.com/regatta-sh/regatta/controllers/recovery"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	"github.com/regatta-sh/regatta/controllers/workload/overlay"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/step"
	"github.com/regatta-sh/regatta/engine"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=broadcastjobs,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=broadcastjobs/status,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=broadcastjobs/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconciler works on one BroadcastJob at a time.
type Reconciler struct {
	client client.Client
	live   client.Reader
	events record.EventRecorder
	engine *engine.Engine
	rounds *explain.Store

	overlay *overlay.Overlay
	memory  *step.Memory[memory]
	frame   step.Frame[*kruise.BroadcastJob]

	kicks    <-chan event.GenericEvent
	now      func() time.Time
	affinity bool
	workers  int
	writes   int
	timeout  time.Duration
	limiter  workqueue.TypedRateLimiter[reconcile.Request]
}

// memory is what is known of a job between its steps. Nothing depends on it but which events
// are recorded, and how often the API server is asked.
type memory struct {
	// listed is true once the pods were read past the cache.
	listed   bool
	recorded step.RecordedEvents
}

// Option changes a Reconciler.
type Option func(*Reconciler)

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option { return func(r *Reconciler) { r.now = now } }

// WithWorkers sets how many jobs are reconciled at once; 3 if unset.
func WithWorkers(n int) Option { return func(r *Reconciler) { r.workers = n } }

// WithAffinity sets whether the scheduler puts pods on their nodes, by affinity, rather than
// the controller; true if unset.
func WithAffinity(on bool) Option { return func(r *Reconciler) { r.affinity = on } }

// WithExpectationTimeout sets how long the cache may take to show a write.
func WithExpectationTimeout(d time.Duration) Option { return func(r *Reconciler) { r.timeout = d } }

// WithRounds sets where explanations are kept.
func WithRounds(s *explain.Store) Option { return func(r *Reconciler) { r.rounds = s } }

// WithKicks has all jobs reconciled at an event, such as that other policies decide.
func WithKicks(kicks <-chan event.GenericEvent) Option {
	return func(r *Reconciler) { r.kicks = kicks }
}

// WithRateLimiter sets how fast jobs that failed are tried again.
func WithRateLimiter(l workqueue.TypedRateLimiter[reconcile.Request]) Option {
	return func(r *Reconciler) { r.limiter = l }
}

// New makes a Reconciler. The client's cache must have the index rollout.OwnerIndex of pods.
func New(c rollout.Clients, e *engine.Engine, opts ...Option) *Reconciler {
	r := &Reconciler{
		client: c.Client, live: c.Live, events: c.Events, engine: e, rounds: explain.NewStore(),
		now: time.Now, affinity: true, workers: 3, writes: 32, timeout: 5 * time.Minute,
	}
	for _, opt := range opts {
		opt(r)
	}
	r.overlay = overlay.New(func() time.Time { return r.now() })
	r.memory = step.NewMemory(func() memory { return memory{} }, func(uid types.UID) {
		r.overlay.ForgetOwner(uid)
		r.rounds.ForgetWorkload(string(uid))
	})
	r.frame = step.Frame[*kruise.BroadcastJob]{
		Kind: "BroadcastJob", New: func() *kruise.BroadcastJob { return &kruise.BroadcastJob{} }, Take: r.reconcileJob, Gone: r.memory.ForgetObject,
		Report: func(ctx context.Context, job *kruise.BroadcastJob, err error) error {
			return failure.Write(ctx, r.client, job, func(job *kruise.BroadcastJob) any { return &job.Status }, err, r.now())
		},
	}
	return r
}

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr)
	if r.kicks != nil {
		b = b.WatchesRawSource(source.Channel(r.kicks, handler.EnqueueRequestsFromMapFunc(crecovery.WrapMapFunc("broadcastjob", r.unfinishedRequests))))
	}
	b = b.Named(kruise.BroadcastJobComponent).
		For(&kruise.BroadcastJob{}, builder.WithPredicates(rollout.UserChanges())).
		Watches(&corev1.Pod{}, &podEvents{r}).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.unfinishedRequests), builder.WithPredicates(nodefit.NodeChangePredicate()))
	return requeue.CompleteController(b, controller.Options{MaxConcurrentReconciles: r.workers, RateLimiter: r.limiter}, r)
}

// unfinishedRequests are the jobs that a node, or other policies, may concern.
func (r *Reconciler) unfinishedRequests(ctx context.Context, _ client.Object) []reconcile.Request {
	return step.ListRequests(ctx, r.client, &kruise.BroadcastJobList{}, func(job *kruise.BroadcastJob) bool {
		return !isFinished(job) && job.Status.Phase != kruise.BroadcastJobPhaseFailed
	})
}

// Reconcile takes one job a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return r.frame.Reconcile(ctx, r.client, req)
}
