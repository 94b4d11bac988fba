// SPDX-License-Identifier: Apache-2.0

// Package nodes reads nodes for the controllers of work that node agents carry out.
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

// ResponseTime is how long a request to a node waits for an answer while the node, or its agent, is gone, if its user has set no
// deadline.
const ResponseTime = 10 * time.Minute

// LostAt returns when a request that a node has begun counts as failed because the node is not ready and so never reports its
// end; zero while the node is ready. asked is when the node was asked. Containers on a node that is not ready may still work, such as
// on one without a network plugin, so a later request has as long. LostAt is for requests without a deadline of the user, which would end them.
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

// Get reads a node, nil if it is gone or is being deleted. A node that the cache does not have may be new, so live
// reads it past the cache.
func Get(ctx context.Context, cached, live client.Reader, name string) (*corev1.Node, error) {
	node, err := FindNode(ctx, cached, live, name)
	if err != nil || node == nil || node.DeletionTimestamp != nil {
		return nil, err
	}
	return node, nil
}

// FindNode reads a node, nil if it is gone. A node that is being deleted still runs its pods until they have ended: the deletion may
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

// UnreadySince is since when a node has not been ready, for example because it is gone for good and was not deleted. It is zero if the node is
// ready, or has not reported its readiness yet.
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
