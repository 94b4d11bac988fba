// SPDX-License-Identifier: Apache-2.0

package livenessprobe

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/agents"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodepodprobes,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconciler works on one pod at a time.
type Reconciler struct {
	reconcile.Deps

	namespace string
	grace     time.Duration

	absences *agents.Absences
	missed   *reconcile.MissedEvents
}

// Option changes a Reconciler.
type Option func(*Reconciler)

// WithGrace sets how long a node may have no agent before a condition on its pods reports that; 20 s
// if unset, to allow for updates of agents.
func WithGrace(d time.Duration) Option { return func(r *Reconciler) { r.grace = d } }

// New makes a Reconciler. The client's cache must have the index nodes.Index. The namespace is that of
// the node agents.
func New(deps reconcile.Deps, namespace string, opts ...Option) *Reconciler {
	r := &Reconciler{Deps: deps.WithDefaults(), namespace: namespace, grace: agents.Grace}
	for _, opt := range opts {
		opt(r)
	}
	r.absences = agents.NewAbsences(r.Now, r.grace)
	r.missed = reconcile.NewMissedEvents(controllerName, r.allRequests)
	return r
}

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	return r.CompleteController(r.NewController(mgr, controllerName, nil).
		For(&corev1.Pod{}, builder.WithPredicates(predicate.NewPredicateFuncs(hasLivenessProbes))).
		Watches(&corev1.Pod{}, r.missed.EnqueueFound(r.ofAgent), builder.WithPredicates(predicate.NewPredicateFuncs(r.isNodeAgent))).
		Watches(&v1alpha1.NodePodProbe{}, handler.Funcs{
			CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { onResults(nil, e.Object, q) },
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { onResults(e.ObjectOld, e.ObjectNew, q) },
		}), r)
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

const controllerName = "livenessprobe-controller"

// hasLivenessProbes reports whether the node agent is to run liveness probes of a pod.
func hasLivenessProbes(o client.Object) bool {
	return o.GetAnnotations()[kruise.ContainerProbeContextKey] != ""
}

// allRequests lists all pods with liveness probes.
func (r *Reconciler) allRequests(ctx context.Context) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, r.Client, &corev1.PodList{}, func(pod *corev1.Pod) bool { return hasLivenessProbes(pod) })
}

// onResults enqueues the pods whose liveness probes have a new result.
func onResults(old, fresh client.Object, q queue) {
	before, _ := old.(*v1alpha1.NodePodProbe)
	now, ok := fresh.(*v1alpha1.NodePodProbe)
	if !ok {
		return
	}
	for i := range now.Status.PodProbeStatuses {
		status := &now.Status.PodProbeStatuses[i]
		for j := range status.ProbeStates {
			s := &status.ProbeStates[j]
			if _, ok := ContainerName(s.Name); ok && (before == nil || !equality.Semantic.DeepEqual(s, stateOf(before, status.UID, s.Name))) {
				q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: status.Namespace, Name: status.Name}})
				break
			}
		}
	}
}

func stateOf(o *v1alpha1.NodePodProbe, uid, name string) *v1alpha1.ContainerProbeState {
	for i := range o.Status.PodProbeStatuses {
		if o.Status.PodProbeStatuses[i].UID != uid {
			continue
		}
		for j := range o.Status.PodProbeStatuses[i].ProbeStates {
			if s := &o.Status.PodProbeStatuses[i].ProbeStates[j]; s.Name == name {
				return s
			}
		}
	}
	return nil
}

// isNodeAgent reports whether a pod is a node agent.
func (r *Reconciler) isNodeAgent(o client.Object) bool {
	return agents.Is(o, r.namespace)
}

// ofAgent returns requests for the pods on the node of an agent whose liveness probes it runs.
func (r *Reconciler) ofAgent(ctx context.Context, o client.Object) ([]reconcile.Request, error) {
	agent, ok := o.(*corev1.Pod)
	if !ok || agent.Spec.NodeName == "" {
		return nil, nil
	}
	return reconcile.ListRequests(ctx, r.Client, &corev1.PodList{}, func(pod *corev1.Pod) bool { return hasLivenessProbes(pod) }, client.MatchingFields{nodes.Index: agent.Spec.NodeName})
}

// Reconcile requests the restart of the containers of a pod whose probes have failed, and reports whether the
// probes are run at all.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := r.Client.Get(ctx, req.NamespacedName, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !availability.IsActive(pod) || pod.Spec.NodeName == "" {
		return reconcile.Result{}, nil
	}
	saved, err := Read(pod)
	if err != nil {
		r.Events.Event(pod, corev1.EventTypeWarning, "InvalidAnnotation", err.Error()+"; no liveness probe is run")
		return reconcile.Result{RequeueAfter: failure.TellAgain}, nil
	}
	if len(saved) == 0 {
		return reconcile.Result{}, nil
	}
	after, err := r.updateProbeCondition(ctx, pod)
	if err == nil {
		var wait time.Duration
		if wait, err = r.requestRestarts(ctx, pod, saved); wait > 0 && (after == 0 || wait < after) {
			after = wait
		}
	}
	if err != nil {
		err = fmt.Errorf("running the liveness probes of pod %s: %w", req, err)
	}
	result, err := requeue.ReconcileResult(ctx, pod, after, err)
	failure.RecordFailure(r.Events, pod, err)
	return result, err
}
