// SPDX-License-Identifier: Apache-2.0

package subset

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Unhurried is the shortest delay before pods are checked again if only a condition
// depends on the result: a pod that the scheduler does not process may stay so indefinitely.
const Unhurried = 5 * time.Second

// MatchesNoNode reports whether no node matches what a subset requires, for example because a zone is misspelt. A
// term that cannot be read matches none.
func MatchesNoNode(ctx context.Context, c client.Reader, term corev1.NodeSelectorTerm) (bool, error) {
	if len(term.MatchExpressions)+len(term.MatchFields) == 0 { // the subset requires nothing
		return false, nil
	}
	selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}})
	if err != nil { // admission refuses it
		return true, nil //nolint:nilerr // the same as if no node matched
	}
	list := &corev1.NodeList{}
	if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing nodes: %w", err)
	}
	return !slices.ContainsFunc(list.Items, func(n corev1.Node) bool { return selector.Match(&n) }), nil
}
