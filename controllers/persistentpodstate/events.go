// SPDX-License-Identifier: Apache-2.0

package persistentpodstate

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueueStates enqueues the PersistentPodStates of a workload.
func (r *Reconciler) enqueueStates(ctx context.Context, q queue, namespace string, kind schema.GroupKind, name string) {
	found, err := reconcile.ListRequests(ctx, r.Client, &kruise.PersistentPodStateList{}, func(state *kruise.PersistentPodState) bool {
		ref := state.Spec.TargetReference
		return ref.Name == name && groupKind(ref) == kind
	}, client.InNamespace(namespace))
	for _, request := range found {
		q.Add(request)
	}
	if err != nil {
		r.missed.EnqueueAllLater(ctx, q, err)
	}
}

// allRequests lists all PersistentPodStates.
func (r *Reconciler) allRequests(ctx context.Context) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, r.Client, &kruise.PersistentPodStateList{}, reconcile.AllObjects[*kruise.PersistentPodState])
}

// onPods enqueues the PersistentPodStates of a pod's workload when the readiness of the pod changes, or it is
// being deleted or is gone.
func (r *Reconciler) onPods() handler.EventHandler {
	of := func(ctx context.Context, q queue, pod client.Object) {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind != "ReplicaSet" {
			r.enqueueStates(ctx, q, pod.GetNamespace(), schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind(), owner.Name)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if pod, ok := e.Object.(*corev1.Pod); ok && availability.HasReadyCondition(pod) {
				of(ctx, q, pod)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { of(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, ok := e.ObjectOld.(*corev1.Pod)
			after, ok2 := e.ObjectNew.(*corev1.Pod)
			if ok && ok2 && (availability.HasReadyCondition(before) != availability.HasReadyCondition(after) || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)) {
				of(ctx, q, after)
			}
		},
	}
}

// onWorkloads enqueues the PersistentPodStates of a workload when it is created, changed or deleted.
func (r *Reconciler) onWorkloads(kind schema.GroupVersionKind) handler.EventHandler {
	of := func(ctx context.Context, q queue, o client.Object) {
		r.enqueueStates(ctx, q, o.GetNamespace(), kind.GroupKind(), o.GetName())
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { of(ctx, q, e.Object) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { of(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) {
				of(ctx, q, e.ObjectNew)
			}
		},
	}
}
