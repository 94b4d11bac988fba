// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Index finds the pods on a node.
const Index = "regatta.node"

// AddIndex adds Index. It is called once for each manager.
func AddIndex(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1.Pod{}, Index, IndexValue); err != nil {
		return fmt.Errorf("indexing pods by node: %w", err)
	}
	return nil
}

// IndexValue returns the value of Index for a pod.
func IndexValue(o client.Object) []string {
	if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		return []string{pod.Spec.NodeName}
	}
	return nil
}
