// SPDX-License-Identifier: Apache-2.0

package launchpriority

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;update
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconciler opens the barriers of pods.
type Reconciler struct{ reconcile.Deps }

// lookAgain is how soon a pod with barriers that are not open is reconciled again: no event reports that another client has deleted
// its ConfigMap.
const lookAgain = time.Minute

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	return r.CompleteController(r.NewController(mgr, "container-launch-priority-controller", nil).
		For(&corev1.Pod{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			pod, ok := o.(*corev1.Pod)
			return ok && HasPendingBarriers(pod)
		}))), r)
}

// Reconcile takes one step for a pod. The next one follows when a container becomes ready or ends.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := r.Client.Get(ctx, req.NamespacedName, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !HasPendingBarriers(pod) {
		return reconcile.Result{}, nil
	}
	after, err := r.openNext(ctx, pod)
	result, err := retryLostRace(ctx, after, err)
	failure.RecordFailure(r.Events, pod, err)
	return result, err
}

// openNext opens the next barrier of a pod. It returns when to reconcile again, also with an error.
func (r *Reconciler) openNext(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	barriers := &corev1.ConfigMap{}
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name + suffix}
	err := r.Live.Get(ctx, name, barriers)
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("reading ConfigMap %s: %w", name, err)
	}
	there := err == nil
	opened := barriers.Data
	if there && belongsToOther(barriers, pod) {
		opened = nil // these barriers were opened for a pod that is gone
	}
	s := nextStep(pod, opened)
	if s.open != "" {
		if err := r.openBarrier(ctx, pod, barriers, there, opened, s.open); err != nil {
			return lookAgain, fmt.Errorf("opening %s of ConfigMap %s: %w", s.open, name, err)
		}
	}
	if err := r.reportBlocked(ctx, pod, s.failed, containersBehind(pod, s.failed, opened)); err != nil || !s.done {
		return lookAgain, err
	}
	return 0, r.markCompleted(ctx, pod)
}

// retryLostRace requeues a pod soon after a conflict with another client, or with another pod that has the same name by now: no event
// reports either. Otherwise it requeues the pod after the given delay.
func retryLostRace(ctx context.Context, after time.Duration, err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		if again, ok := requeue.LoseRace(ctx, err); ok {
			return reconcile.Result{RequeueAfter: again}, nil
		}
	}
	return reconcile.Result{RequeueAfter: after}, err
}

// belongsToOther reports whether the barriers belong to an earlier pod of the same name, whose ConfigMap still exists, or to no pod.
func belongsToOther(barriers *corev1.ConfigMap, pod *corev1.Pod) bool {
	return len(barriers.OwnerReferences) == 0 || slices.ContainsFunc(barriers.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Pod" && o.UID != pod.UID })
}

func (r *Reconciler) openBarrier(ctx context.Context, pod *corev1.Pod, barriers *corev1.ConfigMap, there bool, opened map[string]string, key string) error {
	data := maps.Clone(opened)
	if data == nil {
		data = map[string]string{}
	}
	data[key] = "true"
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	if !there {
		return r.Client.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name + suffix, OwnerReferences: []metav1.OwnerReference{owner}}, Data: data,
		})
	}
	barriers.Data = data
	if belongsToOther(barriers, pod) {
		barriers.OwnerReferences = []metav1.OwnerReference{owner}
	}
	return r.Client.Update(ctx, barriers)
}

// markCompleted records on the pod that all barriers are open.
func (r *Reconciler) markCompleted(ctx context.Context, pod *corev1.Pod) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "annotations": map[string]string{kruise.ContainerLaunchPriorityCompletedKey: "true"},
	}})
	if err != nil {
		return fmt.Errorf("completing pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	err = r.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch))
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("completing pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
