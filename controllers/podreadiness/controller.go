// SPDX-License-Identifier: Apache-2.0

// Package podreadiness opens the readiness gate KruisePodReady of new pods (PA-02). A client that
// closes the gate later must open it again.
package podreadiness

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconciler writes the first value of the condition.
type Reconciler struct{ reconcile.Deps }

// fieldOwner owns the condition in metadata.managedFields until another client writes it.
const fieldOwner = "kruise-pod-readiness"

// SetupWithManager starts the Reconciler with a manager. A new leader finds the pods to open in its
// first list.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	return r.CompleteController(r.NewController(mgr, "pod-readiness-controller", nil).
		For(&corev1.Pod{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			pod, ok := o.(*corev1.Pod)
			return ok && needsGateOpened(pod)
		}))), r)
}

// needsGateOpened reports whether a pod's gate was never opened. The controller of a workload opens
// the gates of its own pods, in a write that it has to make anyway.
func needsGateOpened(pod *corev1.Pod) bool {
	if !availability.IsActive(pod) || !inplace.WantsKruiseReady(pod) {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return true
	}
	_, ours := kinds.FindByOwner(*owner)
	return !ours
}

// Reconcile opens the gate of one pod.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := r.Client.Get(ctx, req.NamespacedName, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !needsGateOpened(pod) {
		return reconcile.Result{}, nil
	}
	// Many clients write to a new pod, and an apply does not conflict with them. It fails only if another
	// client has written the condition since, which may have closed the gate.
	condition := applycorev1.PodCondition().WithType(kruise.KruisePodReady).WithStatus(corev1.ConditionTrue).WithLastTransitionTime(metav1.NewTime(r.Now()))
	opened := applycorev1.Pod(pod.Name, pod.Namespace).WithUID(pod.UID).WithStatus(applycorev1.PodStatus().WithConditions(condition))
	err := r.Client.Status().Apply(ctx, opened, client.FieldOwner(fieldOwner))
	if isUIDConflict(err) {
		return reconcile.Result{RequeueAfter: requeue.Soon}, nil
	}
	if err != nil {
		err = fmt.Errorf("opening %s of pod %s: %w", kruise.KruisePodReady, req, err)
	}
	result, err := requeue.ReconcileResult(ctx, pod, 0, err)
	failure.RecordFailure(r.Events, pod, err)
	return result, err
}

// isUIDConflict reports whether an apply failed because another pod has the same name by now.
func isUIDConflict(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}
