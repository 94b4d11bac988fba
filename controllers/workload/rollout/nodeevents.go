// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/disruption"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/engine/decision"
)

// NodeEvents handles events of nodes: it records what policies read of them, and enqueues the workloads that a change
// concerns; see PodEvents.
func (c *Controller) NodeEvents() handler.EventHandler { return &nodeEvents{c} }

// nodeEvents keeps the topology. For a kind that puts a pod on each node, it enqueues all workloads if more than the
// heartbeat of a node changed. For other kinds it enqueues the workloads that have a pod on the node, if a fact of the node that
// policies read changed and rules of users evaluate these pods.
type nodeEvents struct{ c *Controller }

func (h *nodeEvents) Create(ctx context.Context, e event.CreateEvent, q queue) {
	node, ok := e.Object.(*corev1.Node)
	if !ok {
		return
	}
	changed := h.c.topology.ObserveNode(node)
	switch {
	case h.c.typ.NodeOf != nil:
		h.enqueueAll(ctx, q)
	case changed && !e.IsInInitialList: // after a start each workload is enqueued anyway
		h.enqueueWorkloadsOn(ctx, node.Name, q)
	}
}

func (h *nodeEvents) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	node, ok := e.ObjectNew.(*corev1.Node)
	if !ok {
		return
	}
	changed := h.c.topology.ObserveNode(node)
	if h.c.typ.NodeOf == nil {
		if changed {
			h.enqueueWorkloadsOn(ctx, node.Name, q)
		}
		return
	}
	if before, ok := e.ObjectOld.(*corev1.Node); changed || !ok || nodefit.NodeChanged(before, node) {
		h.enqueueAll(ctx, q)
	}
}

func (h *nodeEvents) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	h.c.topology.ForgetNode(e.Object.GetName())
	if h.c.typ.NodeOf != nil {
		h.enqueueAll(ctx, q)
		return
	}
	h.enqueueWorkloadsOn(ctx, e.Object.GetName(), q)
}

func (h *nodeEvents) Generic(context.Context, event.GenericEvent, queue) {}

func (h *nodeEvents) enqueueAll(ctx context.Context, q queue) {
	requests, err := h.c.allRequests(ctx)
	for _, request := range requests {
		q.Add(request)
	}
	if err != nil {
		h.c.missed.EnqueueAllLater(ctx, q, err)
	}
}

// enqueueWorkloadsOn enqueues the workloads that have a pod on a node, if rules of users may read its facts.
func (h *nodeEvents) enqueueWorkloadsOn(ctx context.Context, node string, q queue) {
	if s := h.c.Engine.ActiveSnapshot(); len(s.UserBundles()) == 0 && len(s.MissingBundles()) == 0 {
		return // so that the nodes of a zone that fails cost nothing
	}
	pods := &corev1.PodList{}
	if err := h.c.Client.List(ctx, pods, client.MatchingFields{nodes.Index: node}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the pods of a node that has changed; all workloads are reconciled", "node", node)
		h.enqueueAll(ctx, q)
		return
	}
	decided := map[reconcile.Request]bool{}
	var unread error
	for i := range pods.Items {
		workloads, err := h.c.podWorkloads(ctx, &pods.Items[i])
		if err != nil {
			unread = fmt.Errorf("finding the workloads of the pods on node %s: %w", node, err)
		}
		for _, workload := range workloads {
			request := reconcile.Request{NamespacedName: workload.NamespacedName}
			if _, known := decided[request]; !known {
				decided[request] = disruption.MayReadNodes(h.c.Engine, decision.Subject{
					Group: h.c.typ.Group, Kind: h.c.typ.Kind, Namespace: workload.Namespace, Name: workload.Name, UID: string(workload.UID),
				})
			}
			if decided[request] {
				q.Add(request)
			}
		}
	}
	if unread != nil {
		h.c.missed.EnqueueAllLater(ctx, q, unread)
	}
}
