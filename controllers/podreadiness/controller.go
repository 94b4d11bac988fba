// SPDX-License-Identifier: Apache-2.0

// Package podreadiness opens the readiness gate KruisePodReady of pods that have
// just been made (PA-02). A client that closes the gate later must open it again.
package podreadiness

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/step"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch

// Reconciler writes the first value of the condition.
type Reconciler struct {
	Client client.Client
	Now    func() time.Time
}

// workers is how many pods are written to at once.
const workers = 8

// SetupWithManager starts the Reconciler with a manager. What it waits for is in
// every pod that a new leader lists.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("pod-readiness-controller").
		For(&corev1.Pod{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			pod, ok := o.(*corev1.Pod)
			return ok && waits(pod)
		}))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// waits says whether a pod's gate was never opened. The controller of a workload opens
// those of its pods, by a write that it has to make anyway.
func waits(pod *corev1.Pod) bool {
	if !availability.Active(pod) || !inplace.WantsKruiseReady(pod) {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return true
	}
	_, ours := kinds.Owner(*owner)
	return !ours
}

// Reconcile opens the gate of one pod.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := r.Client.Get(ctx, req.NamespacedName, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !waits(pod) {
		return reconcile.Result{}, nil
	}
	raw, err := json.Marshal(map[string]any{
		// The patch fails if another client wrote since, which may have closed the gate.
		"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion},
		"status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: kruise.KruisePodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(r.Now()),
		}}},
	})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("encoding the condition of pod %s: %w", pod.Name, err)
	}
	err = r.Client.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, raw))
	if err != nil {
		err = fmt.Errorf("opening %s of pod %s: %w", kruise.KruisePodReady, req, err)
	}
	return step.Result(0, err) // many clients write to a new pod, so that conflicts are common
}
