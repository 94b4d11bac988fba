// SPDX-License-Identifier: Apache-2.0

// Package sidecarterminator ends the sidecars of pods whose main containers have ended, so
// that jobs end (ST-01, ST-02). Policies decide which containers are sidecars.
package sidecarterminator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/engine"
	points "github.com/regatta-sh/regatta/engine/decision/node"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

const (
	// heldAgain is how soon a pod whose sidecars a rule leaves running is reconciled again.
	heldAgain = 10 * time.Second
)

// Events of pods.
const (
	// Reason is the reason of an event about sidecars that are to end.
	Reason = "SidecarTerminator"
	// HeldReason is the reason of an event about sidecars that a rule leaves running.
	HeldReason = "SidecarTerminationHeld"

	byRequest = "Kruise SidecarTerminator is trying to terminate sidecar %v using crr"
	byImage   = "Kruise SidecarTerminator is trying to terminate sidecar %v using in-place update"
)

// Reconciler works on one pod at a time.
type Reconciler struct {
	reconcile.Deps
}

// New makes a Reconciler.
func New(deps reconcile.Deps) *Reconciler {
	r := &Reconciler{Deps: deps.WithDefaults()}
	return r
}

const controllerName = "sidecarterminator-controller"

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	return r.CompleteController(r.NewController(mgr, controllerName, reconcile.NewMissedEvents(controllerName, r.partlyEndedRequests)).
		For(&corev1.Pod{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			pod, ok := o.(*corev1.Pod)
			return ok && isPartlyEnded(pod)
		}))), r)
}

// partlyEndedRequests lists the pods that policies are asked about.
func (r *Reconciler) partlyEndedRequests(ctx context.Context) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, r.Client, &corev1.PodList{}, isPartlyEnded)
}

// isPartlyEnded reports whether policies are to be asked about a pod: it is not restarted as a whole,
// and some of its containers have ended while others run.
func isPartlyEnded(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodPending || pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || pod.Spec.NodeName == "" {
		return false
	}
	ended := 0
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].State.Terminated != nil {
			ended++
		}
	}
	return ended > 0 && ended < len(pod.Spec.Containers)
}

// Reconcile ends the sidecars of one pod that are to end.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := r.Client.Get(ctx, req.NamespacedName, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !isPartlyEnded(pod) {
		return reconcile.Result{}, nil
	}
	node, err := nodes.FindNode(ctx, r.Client, r.Live, pod.Spec.NodeName)
	if err != nil || node == nil { // the control plane deletes the pods of a node that is gone
		failure.RecordFailure(r.Events, pod, err)
		return reconcile.Result{}, err
	}
	in := r.buildTerminationInput(pod, nodes.IsVirtual(node))
	subject := facts.PodSubject(pod)
	answer, _ := engine.Decide(ctx, r.Engine, points.TerminationPoint(), subject, in)
	permitted := answer.ClampAnswer(in)
	if len(permitted.Holds) > 0 {
		hold := permitted.Holds[0]
		r.Events.Event(pod, corev1.EventTypeWarning, HeldReason, fmt.Sprintf("%s (rule %s)", hold.Message, hold.Rule))
		return reconcile.Result{RequeueAfter: heldAgain}, nil
	}
	after, err := r.applyDecision(ctx, pod, permitted)
	result, err := requeue.ReconcileResult(ctx, pod, after, err)
	failure.RecordFailure(r.Events, pod, err)
	return result, err
}
