// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// podEvents enqueues the job of a pod and tells the overlay what the cache has shown.
type podEvents struct{ r *Reconciler }

// owningJob is the job that controls an object, if it is one.
func owningJob(o client.Object) (key types.NamespacedName, uid types.UID, ok bool) {
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil || ref.Kind != "BroadcastJob" || schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group != kruise.GroupVersion.Group {
		return types.NamespacedName{}, "", false
	}
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: ref.Name}, ref.UID, true
}

func (h *podEvents) enqueueOwner(o client.Object, q queue) {
	if key, uid, ok := owningJob(o); ok {
		h.r.overlay.ObservePod(uid, o.GetUID())
		q.Add(reconcile.Request{NamespacedName: key})
	}
}

func (h *podEvents) Create(_ context.Context, e event.CreateEvent, q queue) {
	h.enqueueOwner(e.Object, q)
}

func (h *podEvents) Delete(_ context.Context, e event.DeleteEvent, q queue) {
	if _, uid, ok := owningJob(e.Object); ok {
		h.r.overlay.ObserveDeletion(uid, e.Object.GetUID())
	}
	h.enqueueOwner(e.Object, q)
}

func (h *podEvents) Generic(_ context.Context, e event.GenericEvent, q queue) {
	h.enqueueOwner(e.Object, q)
}

func (h *podEvents) Update(_ context.Context, e event.UpdateEvent, q queue) {
	before, okA := e.ObjectOld.(*corev1.Pod)
	after, okB := e.ObjectNew.(*corev1.Pod)
	if okA && okB && isRelevantChange(before, after) {
		h.enqueueOwner(after, q)
	}
}

// isRelevantChange reports whether a change of a pod can change what its job does.
func isRelevantChange(before, after *corev1.Pod) bool {
	return before.Status.Phase != after.Status.Phase || before.Spec.NodeName != after.Spec.NodeName ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) || totalRestarts(before) != totalRestarts(after) ||
		!maps.Equal(before.Annotations, after.Annotations)
}
