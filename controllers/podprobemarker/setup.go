// SPDX-License-Identifier: Apache-2.0

package podprobemarker

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/podprobemarker/podmeta"
	"github.com/regatta-sh/regatta/controllers/reconcile"
)

// together is how long changes of pods are gathered before a marker is reconciled, since each
// reconcile counts all its pods again.
const together = 500 * time.Millisecond

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	return r.CompleteController(r.NewController(mgr, controllerName, r.missed).
		For(&v1alpha1.PodProbeMarker{}).
		Watches(&corev1.Pod{}, r.onPods()), r)
}

// allRequests lists all markers.
func (r *Reconciler) allRequests(ctx context.Context) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, r.Client, &v1alpha1.PodProbeMarkerList{}, reconcile.AllObjects[*v1alpha1.PodProbeMarker])
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

const controllerName = "podprobemarker-controller"

// onPods enqueues the markers of a pod when a change of the pod can change their counts, or changes a
// condition that the prober of a serverless pod may have written.
func (r *Reconciler) onPods() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { r.enqueueMarkers(ctx, q, e.Object) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { r.enqueueMarkers(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			old, ok := e.ObjectOld.(*corev1.Pod)
			fresh, ok2 := e.ObjectNew.(*corev1.Pod)
			if ok && ok2 && podmeta.IsProbeable(old) == podmeta.IsProbeable(fresh) && maps.Equal(old.Labels, fresh.Labels) &&
				(!r.serverless || equality.Semantic.DeepEqual(old.Status.Conditions, fresh.Status.Conditions)) {
				return
			}
			r.enqueueMarkers(ctx, q, e.ObjectOld, e.ObjectNew)
		},
	}
}

func (r *Reconciler) enqueueMarkers(ctx context.Context, q queue, pods ...client.Object) {
	all, err := podmeta.List(ctx, r.Client, pods[0].GetNamespace())
	if err != nil {
		r.missed.EnqueueAllLater(ctx, q, err)
		return
	}
	for _, m := range all {
		for _, o := range pods {
			if pod, ok := o.(*corev1.Pod); ok && (m.SelectsPod(pod, false) || r.serverless && m.SelectsPod(pod, true)) {
				q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m.PodProbeMarker)}, together)
				break
			}
		}
	}
}
