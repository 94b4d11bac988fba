// SPDX-License-Identifier: Apache-2.0

// Package sidecarterminator ends the sidecars of pods whose main containers have ended, so
// that jobs end (ST-01, ST-02). Which containers those are is decided by policies.
package sidecarterminator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/step"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/node"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

const (
	// heldAgain is when a pod is looked at again whose sidecars a rule leaves running.
	heldAgain = 10 * time.Second
)

// Events of pods.
const (
	// Reason is of an event of sidecars that are to end.
	Reason = "SidecarTerminator"
	// HeldReason is of an event of sidecars that a rule leaves running.
	HeldReason = "SidecarTerminationHeld"

	byRequest = "Kruise SidecarTerminator is trying to terminate sidecar %v using crr"
	byImage   = "Kruise SidecarTerminator is trying to terminate sidecar %v using in-place update"
)

// Reconciler works on one pod at a time.
type Reconciler struct {
	client client.Client
	live   client.Reader
	engine *engine.Engine
	events record.EventRecorder

	now     func() time.Time
	workers int
	limiter workqueue.TypedRateLimiter[reconcile.Request]
}

// Option changes a Reconciler.
type Option func(*Reconciler)

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option { return func(r *Reconciler) { r.now = now } }

// WithWorkers sets how many pods are reconciled at once; 3 if unset.
func WithWorkers(n int) Option { return func(r *Reconciler) { r.workers = n } }

// WithRateLimiter sets how fast pods that failed are tried again.
func WithRateLimiter(l workqueue.TypedRateLimiter[reconcile.Request]) Option {
	return func(r *Reconciler) { r.limiter = l }
}

// New makes a Reconciler. live reads past the cache.
func New(c client.Client, live client.Reader, e *engine.Engine, events record.EventRecorder, opts ...Option) *Reconciler {
	r := &Reconciler{client: c, live: live, engine: e, events: events, now: time.Now, workers: 3}
	for _, opt := range opts {
		opt(r)
	}
	return r
}

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return requeue.CompleteController(ctrl.NewControllerManagedBy(mgr).
		Named("sidecarterminator-controller").
		For(&corev1.Pod{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			pod, ok := o.(*corev1.Pod)
			return ok && isPartlyEnded(pod)
		}))), controller.Options{MaxConcurrentReconciles: r.workers, RateLimiter: r.limiter}, r)
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

// Reconcile ends the sidecars of one pod as far as they are to end.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := r.client.Get(ctx, req.NamespacedName, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !isPartlyEnded(pod) {
		return reconcile.Result{}, nil
	}
	node, err := nodes.FindNode(ctx, r.client, r.live, pod.Spec.NodeName)
	if err != nil || node == nil { // the control plane deletes the pods of a node that is gone
		failure.RecordFailure(r.events, pod, err)
		return reconcile.Result{}, err
	}
	in := r.buildTerminationInput(pod, nodes.IsVirtual(node))
	subject := decision.Subject{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}
	answer, _ := engine.Decide(ctx, r.engine, points.TerminationPoint(), subject, in)
	permitted := answer.ClampAnswer(in)
	if len(permitted.Holds) > 0 {
		hold := permitted.Holds[0]
		r.events.Event(pod, corev1.EventTypeWarning, HeldReason, fmt.Sprintf("%s (rule %s)", hold.Message, hold.Rule))
		return reconcile.Result{RequeueAfter: heldAgain}, nil
	}
	after, err := r.applyDecision(ctx, pod, permitted)
	result, err := step.ReconcileResult(ctx, pod, after, err)
	failure.RecordFailure(r.events, pod, err)
	return result, err
}
