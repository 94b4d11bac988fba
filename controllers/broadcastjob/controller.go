// SPDX-License-Identifier: Apache-2.0

// Package broadcastjob runs the pods of BroadcastJobs: one to its end on each node that fits
// (BJ-01 to BJ-06). Which nodes are next is a decision of the policies.
package broadcastjob

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	"github.com/regatta-sh/regatta/controllers/workload/overlay"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=broadcastjobs,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=broadcastjobs/status,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=broadcastjobs/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconciler works on one BroadcastJob at a time.
type Reconciler struct {
	reconcile.Deps
	reconcile.Reconciler

	overlay *overlay.Overlay
	memory  *reconcile.Memory[memory]
	missed  *reconcile.MissedEvents

	affinity bool
	writes   int
	timeout  time.Duration
}

// memory is what is remembered of a job between reconciles. Only the choice of events to record, and
// how often the API server is read, depend on it.
type memory struct {
	// listed is true once the pods were read from the API server.
	listed   bool
	recorded reconcile.RecordedEvents
}

// Option changes a Reconciler.
type Option func(*Reconciler)

// WithAffinity sets whether the scheduler puts pods on their nodes, by affinity, rather than
// the controller; true if unset.
func WithAffinity(on bool) Option { return func(r *Reconciler) { r.affinity = on } }

// WithExpectationTimeout sets how long the cache may take to show a write.
func WithExpectationTimeout(d time.Duration) Option { return func(r *Reconciler) { r.timeout = d } }

// New makes a Reconciler. The client's cache must have the index rollout.OwnerIndex of pods.
func New(deps reconcile.Deps, opts ...Option) *Reconciler {
	r := &Reconciler{
		Deps:     deps.WithDefaults(),
		affinity: true, writes: 32, timeout: 5 * time.Minute,
	}
	for _, opt := range opts {
		opt(r)
	}
	r.missed = reconcile.NewMissedEvents(kruise.BroadcastJobComponent, r.unfinishedRequests)
	r.overlay = overlay.New(func() time.Time { return r.Now() })
	r.memory = reconcile.NewMemory(func() memory { return memory{} }, func(uid types.UID) {
		r.overlay.ForgetOwner(uid)
		r.Rounds.ForgetWorkload(string(uid))
	})
	r.Reconciler = reconcile.NewObjectReconciler(r.Deps, reconcile.ObjectFuncs[*kruise.BroadcastJob]{
		Reconcile: r.reconcileJob, Forget: r.memory.ForgetObject,
		Status: func(job *kruise.BroadcastJob) any { return &job.Status }, Summarize: summarizeJob,
	})
	return r
}

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	b := r.NewController(mgr, kruise.BroadcastJobComponent, r.missed).
		For(&kruise.BroadcastJob{}, builder.WithPredicates(reconcile.UserChanges())).
		Watches(&corev1.Pod{}, &podEvents{r}).
		Watches(&corev1.Node{}, r.missed.EnqueueAll(), builder.WithPredicates(nodefit.NodeChangePredicate()))
	return r.CompleteController(b, r)
}

// unfinishedRequests are the jobs that a node, or other policies, may concern.
func (r *Reconciler) unfinishedRequests(ctx context.Context) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, r.Client, &kruise.BroadcastJobList{}, func(job *kruise.BroadcastJob) bool {
		return !isFinished(job) && job.Status.Phase != kruise.BroadcastJobPhaseFailed
	})
}
