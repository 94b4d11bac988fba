// SPDX-License-Identifier: Apache-2.0

// Package nodes reads nodes as the controllers of what node agents carry out need them.
package nodes

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// ResponseTime is how long what a node was asked for waits for an answer while the node, or its agent, is gone and its user has set no
// deadline.
const ResponseTime = 10 * time.Minute

// LostAt is when what a node was asked for at a time, and has begun with, has failed, as the node is not ready and so never reports its
// end; zero while it is ready. What runs on a node that is not ready may work, such as on one without a network plugin, so what it was asked
// for since then has as long. It is for what has no deadline of its user's: that one ends it else.
func LostAt(node *corev1.Node, asked time.Time) time.Time {
	since := UnreadySince(node)
	if since.IsZero() {
		return since
	}
	if since.Before(asked) {
		since = asked
	}
	return since.Add(ResponseTime)
}

// Get reads a node, nil if it is gone or is being deleted. A cache that does not have it yet is no proof: live
// reads past it.
func Get(ctx context.Context, cached, live client.Reader, name string) (*corev1.Node, error) {
	node, err := FindNode(ctx, cached, live, name)
	if err != nil || node == nil || node.DeletionTimestamp != nil {
		return nil, err
	}
	return node, nil
}

// FindNode reads a node, nil if it is gone. One that is being deleted still runs its pods until they have ended: what deletes it may
// wait for them.
func FindNode(ctx context.Context, cached, live client.Reader, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := cached.Get(ctx, client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		err = live.Get(ctx, client.ObjectKey{Name: name}, node)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading node %s: %w", name, err)
	}
	return node, nil
}

// ReadySince is when a node became ready, zero if it is not.
func ReadySince(node *corev1.Node) time.Time {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// UnreadySince is since when a node is not ready, such as one that is gone for good and is not deleted; zero if it is ready, or
// has not said so yet.
func UnreadySince(node *corev1.Node) time.Time {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// IsVirtual reports whether a node has no kubelet of its own, and so no node agent.
func IsVirtual(node *corev1.Node) bool {
	return node.Labels[kruise.ServerlessNodeKey] == kruise.ServerlessNodeValue
}
