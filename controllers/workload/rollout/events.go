// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
)

// PodEvents handles events of pods: it enqueues their workloads. A manager's cache calls
// it, and so does any other source of events.
func (c *Controller) PodEvents() handler.EventHandler { return &podEvents{c} }

// podEvents enqueues the workloads of a pod and reports to the overlay what the cache has
// shown.
type podEvents struct{ c *Controller }

func (h *podEvents) enqueueWorkloads(ctx context.Context, o client.Object, q queue) {
	h.enqueueReferences(h.findWorkloads(ctx, o, q), o, q)
	h.enqueueAdopters(ctx, o, q)
}

// findWorkloads returns the workloads that a pod belongs to. If they cannot be read, all workloads are enqueued later.
func (h *podEvents) findWorkloads(ctx context.Context, o client.Object, q queue) []Reference {
	workloads, err := h.c.podWorkloads(ctx, o)
	if err != nil {
		h.c.missed.EnqueueAllLater(ctx, q, fmt.Errorf("finding the workloads of pod %s: %w", client.ObjectKeyFromObject(o), err))
	}
	return workloads
}

// enqueueAdopters enqueues the workloads that may adopt a pod. It does not report to the overlay, since an adoption may be
// under way that the cache does not show yet.
func (h *podEvents) enqueueAdopters(ctx context.Context, pod client.Object, q queue) {
	requests, err := h.c.adopterRequests(ctx, pod)
	for _, request := range requests {
		q.Add(request)
	}
	if err != nil {
		h.c.missed.EnqueueAllLater(ctx, q, err)
	}
}

func (h *podEvents) enqueueReferences(workloads []Reference, o client.Object, q queue) {
	for _, ref := range workloads {
		h.c.overlay.ObservePod(ref.UID, o.GetUID())
		q.Add(reconcile.Request{NamespacedName: ref.NamespacedName})
	}
}

func (h *podEvents) Create(ctx context.Context, e event.CreateEvent, q queue) {
	h.enqueueWorkloads(ctx, e.Object, q)
}

func (h *podEvents) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	workloads := h.findWorkloads(ctx, e.Object, q)
	for _, ref := range workloads {
		h.c.overlay.ObserveDeletion(ref.UID, e.Object.GetUID())
	}
	h.enqueueReferences(workloads, e.Object, q)
	h.enqueueAdopters(ctx, e.Object, q)
}

func (h *podEvents) Generic(ctx context.Context, e event.GenericEvent, q queue) {
	h.enqueueWorkloads(ctx, e.Object, q)
}

func (h *podEvents) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	before, okA := e.ObjectOld.(*corev1.Pod)
	after, okB := e.ObjectNew.(*corev1.Pod)
	if !okA || !okB || before.ResourceVersion == after.ResourceVersion {
		return
	}
	moved := membershipChanged(before, after)
	matters := !h.c.gates.EventOptimization || isRelevantChange(before, after, h.c.gates.VerticalScaling)
	if !moved && !matters {
		return
	}
	now := h.findWorkloads(ctx, after, q)
	if moved {
		left := slices.DeleteFunc(h.findWorkloads(ctx, before, q), func(ref Reference) bool { return slices.Contains(now, ref) })
		h.enqueueReferences(left, before, q)
	}
	if matters {
		h.enqueueReferences(now, after, q)
	}
	if moved {
		h.enqueueAdopters(ctx, after, q)
	}
}

// membershipChanged reports whether a pod may belong to other workloads than before. Type.Workloads reads the
// labels and annotations of a pod; a kind that owns its pods reads their owner.
func membershipChanged(before, after *corev1.Pod) bool {
	return !maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) ||
		!reflect.DeepEqual(before.OwnerReferences, after.OwnerReferences)
}

// isRelevantChange reports whether a change of a pod can change what its workload does (CS-18). Other
// changes, such as the time of a probe, need no reconcile.
func isRelevantChange(before, after *corev1.Pod, resizes bool) bool {
	if resizes || before.Generation != after.Generation || !maps.Equal(before.Labels, after.Labels) {
		return true
	}
	if !reflect.DeepEqual(before.Finalizers, after.Finalizers) || !reflect.DeepEqual(before.OwnerReferences, after.OwnerReferences) {
		return true
	}
	if (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) || before.Status.Phase != after.Status.Phase {
		return true
	}
	if before.Spec.NodeName != after.Spec.NodeName {
		return true
	}
	for _, t := range []corev1.PodConditionType{corev1.PodReady, kruise.InPlaceUpdateReady} {
		a, b := inplace.FindCondition(before, t), inplace.FindCondition(after, t)
		if (a == nil) != (b == nil) || (a != nil && a.Status != b.Status) {
			return true
		}
	}
	return inplace.IncompleteReason(before) != "" // the update may have made progress
}
