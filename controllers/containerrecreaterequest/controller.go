// SPDX-License-Identifier: Apache-2.0

// Package containerrecreaterequest is the manager's part of ContainerRecreateRequests (CRR-02 to
// CRR-05). It enforces deadlines, takes the pod out of its services, and copies what the pod reports
// of new runs. By the policies it decides which containers the node may stop now. The node agent does
// the rest.
package containerrecreaterequest

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/node"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// component is the name of the controller in events.
const component = "containerrecreaterequest-controller"

// podIndex finds the requests of a pod.
const podIndex = "spec.podName"

// Reconciler works on one request at a time.
type Reconciler struct {
	reconcile.Deps
	reconcile.Reconciler

	budgets func(context.Context, *corev1.Pod) ([]points.Budget, error)
	charge  func(context.Context, *corev1.Pod) (*decision.Hold, error)
	agents  func(ctx context.Context, node string) (there bool, left time.Duration, err error)
	missed  *reconcile.MissedEvents
}

// Option changes a Reconciler.
type Option func(*Reconciler)

// WithBudgets sets how to find the budgets of a pod for the policies. The policies see no budgets if unset.
func WithBudgets(of func(context.Context, *corev1.Pod) ([]points.Budget, error)) Option {
	return func(r *Reconciler) { r.budgets = of }
}

// WithCharge sets the check of the pod's budget before a restart that policies charge to it. The hold
// is why the restart waits. No restart waits for a budget if unset.
func WithCharge(charge func(context.Context, *corev1.Pod) (*decision.Hold, error)) Option {
	return func(r *Reconciler) { r.charge = charge }
}

// WithAgents sets how to find out whether a node has a node agent. If it has none, left is for how long the agent may still be in
// replacement. If unset, each node counts as having one.
func WithAgents(on func(ctx context.Context, node string) (there bool, left time.Duration, err error)) Option {
	return func(r *Reconciler) { r.agents = on }
}

// New makes a Reconciler.
func New(deps reconcile.Deps, opts ...Option) *Reconciler {
	r := &Reconciler{Deps: deps.WithDefaults()}
	for _, opt := range opts {
		opt(r)
	}
	r.missed = reconcile.NewMissedEvents(component, r.unfinishedRequests)
	r.Reconciler = reconcile.NewObjectReconciler(r.Deps, reconcile.ObjectFuncs[*kruise.ContainerRecreateRequest]{
		Reconcile: r.reconcileRequest, Finalize: r.reconcileRequest, Report: r.reportFailure,
	})
	return r
}

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &kruise.ContainerRecreateRequest{}, podIndex, func(o client.Object) []string {
		request, ok := o.(*kruise.ContainerRecreateRequest)
		if !ok || isFinished(request) {
			return nil
		}
		return []string{request.Spec.PodName}
	})
	if err != nil {
		return fmt.Errorf("indexing ContainerRecreateRequests: %w", err)
	}
	return r.CompleteController(r.NewController(mgr, component, r.missed).
		For(&kruise.ContainerRecreateRequest{}).
		Watches(&corev1.Pod{}, r.missed.EnqueueFound(r.ofPod)), r)
}

// unfinishedRequests lists the requests that have not ended.
func (r *Reconciler) unfinishedRequests(ctx context.Context) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, r.Client, &kruise.ContainerRecreateRequestList{}, func(request *kruise.ContainerRecreateRequest) bool { return !isFinished(request) })
}

// ofPod are the requests of a pod that have not ended.
func (r *Reconciler) ofPod(ctx context.Context, pod client.Object) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, r.Client, &kruise.ContainerRecreateRequestList{}, reconcile.AllObjects[*kruise.ContainerRecreateRequest],
		client.InNamespace(pod.GetNamespace()), client.MatchingFields{podIndex: pod.GetName()})
}
