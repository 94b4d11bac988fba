// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/regatta-sh/regatta/test/cluster/controlplane"
)

// waitUsable returns when a pod that is created now is admitted and placed:
// before that, the first kubectl of a user would fail for no visible reason.
func (c *Cluster) waitUsable(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	return controlplane.Wait(ctx, 90*time.Second, "a usable cluster", func(ctx context.Context) error {
		// Pods are refused until their service account is there.
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("asking for the default service account: %w", err)
		}
		return nodesUsable(ctx, client, c.State.Real+c.State.Simulated)
	})
}

func nodesUsable(ctx context.Context, client kubernetes.Interface, wanted int) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	if len(nodes.Items) < wanted {
		return fmt.Errorf("%d of %d nodes have registered", len(nodes.Items), wanted)
	}
	for _, node := range nodes.Items {
		if !ready(&node) {
			return fmt.Errorf("node %s is not ready", node.Name)
		}
		// The taint is lifted a moment after the node becomes ready.
		for _, taint := range node.Spec.Taints {
			if taint.Key == corev1.TaintNodeNotReady {
				return fmt.Errorf("node %s is still tainted as not ready", node.Name)
			}
		}
	}
	return nil
}

func ready(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
