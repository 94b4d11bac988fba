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

// Unhurried is how soon pods are looked at again at the earliest where nothing but a condition
// waits for it: those that the scheduler does not judge may stay so indefinitely.
const Unhurried = 5 * time.Second

// MatchesNoNode reports whether no node has what a subset requires, as where a zone is misspelt. What
// cannot be read selects none.
func MatchesNoNode(ctx context.Context, c client.Reader, term corev1.NodeSelectorTerm) (bool, error) {
	if len(term.MatchExpressions)+len(term.MatchFields) == 0 { // the subset requires nothing
		return false, nil
	}
	selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}})
	if err != nil { // admission refuses it
		return true, nil //nolint:nilerr // it is as if no node had it
	}
	list := &corev1.NodeList{}
	if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing nodes: %w", err)
	}
	return !slices.ContainsFunc(list.Items, func(n corev1.Node) bool { return selector.Match(&n) }), nil
}
