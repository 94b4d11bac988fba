// SPDX-License-Identifier: Apache-2.0

package nodefit

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// NodeChanged reports whether a change of a node may change a verdict, or a decision of a
// policy. Heartbeats, images and addresses do not.
func NodeChanged(before, after *corev1.Node) bool {
	return before.Spec.Unschedulable != after.Spec.Unschedulable ||
		!maps.Equal(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) ||
		!equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable) ||
		!maps.Equal(NodeConditions(before), NodeConditions(after)) ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
}

// NodeConditions returns the statuses of a node's conditions by type, without the times of
// its heartbeats.
func NodeConditions(node *corev1.Node) map[string]string {
	out := make(map[string]string, len(node.Status.Conditions))
	for _, c := range node.Status.Conditions {
		out[string(c.Type)] = string(c.Status)
	}
	return out
}

// NodeChangePredicate passes the events of nodes that may change a verdict.
func NodeChangePredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, was := e.ObjectOld.(*corev1.Node)
		after, is := e.ObjectNew.(*corev1.Node)
		return !was || !is || NodeChanged(before, after)
	}}
}
