// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
)

// PodEvents handles events of pods: it enqueues their workloads. A manager's cache calls
// it, and so does any other source of events.
func (c *Controller) PodEvents() handler.EventHandler { return &podEvents{c} }

// NodeEvents handles events of nodes: it learns where they are, and what else is
// to be known of them; see PodEvents.
func (c *Controller) NodeEvents() handler.EventHandler { return &nodeEvents{c} }

// podEvents enqueues the workloads of a pod and tells the overlay what the cache has
// shown.
type podEvents struct{ c *Controller }

func (h *podEvents) enqueue(ctx context.Context, o client.Object, q queue) {
	h.add(h.c.workloads(ctx, o), o, q)
	h.offer(ctx, o, q)
}

// offer enqueues the workloads that may adopt a pod. The overlay is not told: an adoption may be
// under way that the cache does not show yet.
func (h *podEvents) offer(ctx context.Context, pod client.Object, q queue) {
	for _, request := range h.c.adopters(ctx, pod) {
		q.Add(request)
	}
}

func (h *podEvents) add(workloads []Reference, o client.Object, q queue) {
	for _, ref := range workloads {
		h.c.overlay.Observe(ref.UID, o.GetUID())
		q.Add(reconcile.Request{NamespacedName: ref.NamespacedName})
	}
}

func (h *podEvents) Create(ctx context.Context, e event.CreateEvent, q queue) {
	h.enqueue(ctx, e.Object, q)
}

func (h *podEvents) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	workloads := h.c.workloads(ctx, e.Object)
	for _, ref := range workloads {
		h.c.overlay.Ended(ref.UID, e.Object.GetUID())
	}
	h.add(workloads, e.Object, q)
	h.offer(ctx, e.Object, q)
}

func (h *podEvents) Generic(ctx context.Context, e event.GenericEvent, q queue) {
	h.enqueue(ctx, e.Object, q)
}

func (h *podEvents) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	before, okA := e.ObjectOld.(*corev1.Pod)
	after, okB := e.ObjectNew.(*corev1.Pod)
	if !okA || !okB || before.ResourceVersion == after.ResourceVersion {
		return
	}
	moved := moved(before, after)
	matters := !h.c.gates.EventOptimization || relevant(before, after, h.c.gates.VerticalScaling)
	if !moved && !matters {
		return
	}
	now := h.c.workloads(ctx, after)
	if moved {
		left := slices.DeleteFunc(h.c.workloads(ctx, before), func(ref Reference) bool { return slices.Contains(now, ref) })
		h.add(left, before, q)
	}
	if matters {
		h.add(now, after, q)
	}
	if moved {
		h.offer(ctx, after, q)
	}
}

// moved says whether a pod may be of other workloads than before. Type.Workloads goes by the
// labels and annotations of a pod, and a kind that owns its pods by their owner.
func moved(before, after *corev1.Pod) bool {
	return !maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) ||
		!reflect.DeepEqual(before.OwnerReferences, after.OwnerReferences)
}

// relevant says whether a change of a pod can change what its workload does (CS-18). Any
// other, such as a probe's time, needs no reconcile.
func relevant(before, after *corev1.Pod, resizes bool) bool {
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
		a, b := inplace.Condition(before, t), inplace.Condition(after, t)
		if (a == nil) != (b == nil) || (a != nil && a.Status != b.Status) {
			return true
		}
	}
	return inplace.Incomplete(before) != "" // what it waits for may have come
}

// nodeEvents keeps the topology. It enqueues the workloads of kinds that put a pod on each
// node if more than the heartbeat of a node changed, and nothing of other kinds.
type nodeEvents struct{ c *Controller }

func (h *nodeEvents) Create(ctx context.Context, e event.CreateEvent, q queue) {
	h.observe(ctx, nil, e.Object, q)
}

func (h *nodeEvents) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	h.observe(ctx, e.ObjectOld, e.ObjectNew, q)
}

func (h *nodeEvents) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	h.c.topology.Forget(e.Object.GetName())
	if h.c.typ.NodeOf != nil {
		h.enqueue(ctx, q)
	}
}

func (h *nodeEvents) observe(ctx context.Context, before, after client.Object, q queue) {
	now, whole := after.(*corev1.Node)
	if h.c.typ.NodeOf == nil || !whole {
		h.c.topology.Observe(after.GetName(), after.GetLabels())
		return
	}
	h.c.topology.ObserveNode(now)
	if was, ok := before.(*corev1.Node); !ok || nodefit.Changed(was, now) {
		h.enqueue(ctx, q)
	}
}

func (h *nodeEvents) enqueue(ctx context.Context, q queue) {
	for _, request := range h.c.all(ctx, nil) {
		q.Add(request)
	}
}

func (h *nodeEvents) Generic(context.Context, event.GenericEvent, queue) {}
