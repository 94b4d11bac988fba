// SPDX-License-Identifier: Apache-2.0

// Package workloadspread keeps the status of WorkloadSpreads up to date with the existing pods, decides
// which pods are deleted first at scale-in, and deletes pods of subsets that have no room (WS-05 to
// WS-09). The webhook of pods puts new pods into subsets.
package workloadspread

import (
	"context"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/namespaces"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=workloadspreads,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=workloadspreads/status,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// DeploymentRevisionKey is the annotation of ReplicaSets with their number in the history of their Deployment.
const DeploymentRevisionKey = "deployment.kubernetes.io/revision"

// Reconciler works on one WorkloadSpread at a time.
type Reconciler struct {
	reconcile.Deps
	reconcile.Reconciler

	targets *spread.Targets
	book    *spread.Recorder
	version spread.Versions

	memory *reconcile.Memory[memory]
	missed *reconcile.MissedEvents
	mu     sync.Mutex

	writes int
}

// memory is the state that the controller keeps for a WorkloadSpread between rounds.
type memory struct {
	// evictionHeld is the reason why pods are not deleted, "" if there is none.
	evictionHeld string
	// warned are the subjects of warnings. mu guards it, since pods are written in parallel.
	warned map[string]bool
	// written is when the status was last written.
	written time.Time
}

// Option changes a Reconciler.
type Option func(*Reconciler)

// WithVersions sets the kinds of workloads whose versions are counted separately.
func WithVersions(v spread.Versions) Option { return func(r *Reconciler) { r.version = v } }

// New makes a Reconciler. The client's cache must have the index of rollout.AddIndexes.
func New(deps reconcile.Deps, targets *spread.Targets, book *spread.Recorder, opts ...Option) *Reconciler {
	r := &Reconciler{
		Deps:    deps.WithDefaults(),
		targets: targets, book: book, version: spread.ParseVersions("deployment,replicaset"), writes: 32,
	}
	for _, opt := range opts {
		opt(r)
	}
	r.missed = reconcile.NewMissedEvents(kruise.WorkloadSpreadComponent, r.allRequests)
	r.memory = reconcile.NewMemory(func() memory { return memory{warned: map[string]bool{}} }, func(uid types.UID) { r.Rounds.ForgetWorkload(string(uid)) })
	r.Reconciler = reconcile.NewObjectReconciler(r.Deps, reconcile.ObjectFuncs[*kruise.WorkloadSpread]{
		Reconcile: r.reconcileSpread, Forget: r.memory.ForgetObject,
		// An event alone reports the failure: the status is that of the placement, which the webhook writes too.
		Report: func(_ context.Context, w *kruise.WorkloadSpread, err error) error {
			if failure.IsReported(err) {
				failure.RecordFailure(r.Events, w, err)
			}
			return nil
		},
	})
	return r
}

// SetupWithManager adds the Reconciler, with its watches, to a manager.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	b := r.NewController(mgr, kruise.WorkloadSpreadComponent, r.missed).
		For(&kruise.WorkloadSpread{}, builder.WithPredicates(reconcile.UserChanges())).
		Watches(&corev1.Pod{}, r.delayedHandler(r.ofPod), builder.WithPredicates(podChangePredicate()))
	b = namespaces.WatchLabels(b, r.missed.EnqueueInNamespace())
	for _, o := range []client.Object{&kruise.CloneSet{}, &kruise.StatefulSet{}, &appsv1.Deployment{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}, &batchv1.Job{}} {
		b = b.Watches(o, r.missed.EnqueueFound(r.ofWorkload), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, newRevisions())))
	}
	return r.CompleteController(b, r)
}

// settle is how long events of pods are collected before the status is written.
const settle = 100 * time.Millisecond

// delayedHandler enqueues requests for an event after a short delay, so that many events lead to one write.
func (r *Reconciler) delayedHandler(of reconcile.FindFunc) handler.EventHandler {
	add := func(ctx context.Context, o client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		found, err := of(ctx, o)
		for _, req := range found {
			q.AddAfter(req, settle)
		}
		if err != nil {
			r.missed.EnqueueAllLater(ctx, q, err)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, e.Object, q)
		},
	}
}

// newRevisions passes CloneSets whose controller has found another update revision, since deletion costs depend on that.
func newRevisions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false }, GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, before := e.ObjectOld.(*kruise.CloneSet)
			is, now := e.ObjectNew.(*kruise.CloneSet)
			return before && now && was.Status.UpdateRevision != is.Status.UpdateRevision
		},
	}
}

// podChangePredicate passes changes of the node of a pod, of its version, and of whether it counts.
func podChangePredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
		return was.Spec.NodeName != is.Spec.NodeName || was.Status.Phase != is.Status.Phase || (was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) ||
			was.Labels[appsv1.ControllerRevisionHashLabelKey] != is.Labels[appsv1.ControllerRevisionHashLabelKey] ||
			was.Labels[appsv1.DefaultDeploymentUniqueLabelKey] != is.Labels[appsv1.DefaultDeploymentUniqueLabelKey] ||
			was.Annotations[kruise.MatchedWorkloadSpreadKey] != is.Annotations[kruise.MatchedWorkloadSpreadKey] || len(was.Status.Conditions) != len(is.Status.Conditions)
	}}
}

// ofPod returns a request for the spread of a pod.
func (r *Reconciler) ofPod(ctx context.Context, o client.Object) ([]reconcile.Request, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return nil, nil
	}
	if m := spread.MarkOf(pod); m != nil {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: m.Name}}}, nil
	}
	w, err := r.targets.FindSpread(ctx, pod.Namespace, pod)
	if meta.IsNoMatchError(err) { // the kind of an owner is not served, so there is none
		return nil, nil
	}
	if err != nil || w == nil {
		return nil, client.IgnoreNotFound(err) // if an owner is gone, its pods will be deleted too
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(w)}}, nil
}

// allRequests lists all spreads.
func (r *Reconciler) allRequests(ctx context.Context) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, r.Client, &kruise.WorkloadSpreadList{}, reconcile.AllObjects[*kruise.WorkloadSpread])
}

// ofWorkload returns requests for the spreads of a workload.
func (r *Reconciler) ofWorkload(ctx context.Context, o client.Object) (out []reconcile.Request, err error) {
	all, err := r.targets.ListSpreads(ctx, o.GetNamespace())
	if err != nil {
		return nil, err
	}
	for _, w := range all {
		if w.Spec.TargetReference.Name == o.GetName() { // also for a workload of another kind, for which the round does nothing
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(w)})
		}
	}
	return out, nil
}

// recordEventOnce records a warning about a subject only once.
func (r *Reconciler) recordEventOnce(w *kruise.WorkloadSpread, reason, subject, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.memory.GetOrCreate(w).warned
	if known[reason+" "+subject] {
		return
	}
	if len(known) > 1000 {
		clear(known)
	}
	known[reason+" "+subject] = true
	r.Events.Event(w, corev1.EventTypeWarning, reason, message)
}
