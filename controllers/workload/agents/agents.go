// SPDX-License-Identifier: Apache-2.0

// Package agents finds out which nodes have a node agent.
package agents

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/workload/nodes"
)

// The label of the pods of node agents.
const (
	label = "control-plane"
	value = "daemon"
)

// Grace is how long a node may be without an agent before it counts as a node that has none.
// It covers the replacement of an agent by an update.
const Grace = 20 * time.Second

// Is reports whether a pod is a node agent. namespace is the namespace of the node agents.
func Is(o client.Object, namespace string) bool {
	return o.GetNamespace() == namespace && o.GetLabels()[label] == value
}

// PodsOnNode lists the pods of the agents of a node. They are shared with the cache of the reader, which
// must have the index nodes.Index.
func PodsOnNode(ctx context.Context, reader client.Reader, namespace, node string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := reader.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{nodes.Index: node}, client.MatchingLabels{label: value}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("finding the agent of node %s: %w", node, err)
	}
	return list.Items, nil
}

// Absences remembers since when nodes have been without an agent. It is safe for concurrent use.
type Absences struct {
	now   func() time.Time
	grace time.Duration

	mu    sync.Mutex
	since map[string]time.Time
}

// NewAbsences makes Absences. A node counts as a node without an agent after grace.
func NewAbsences(now func() time.Time, grace time.Duration) *Absences {
	return &Absences{now: now, grace: grace, since: map[string]time.Time{}}
}

// RemainingGrace notes whether a node has an agent, and returns how long to wait before the
// node counts as a node without one. The result is not positive if it counts as such already, or has an agent.
func (a *Absences) RemainingGrace(node string, there bool) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if there {
		delete(a.since, node)
		return 0
	}
	since, ok := a.since[node]
	if !ok {
		since = a.now()
		a.since[node] = since
	}
	return since.Add(a.grace).Sub(a.now())
}

// Deployed finds out on which nodes agents are deployed, whether they are ready or not: an agent that
// restarts continues its work.
type Deployed struct {
	reader    client.Reader
	namespace string
	absences  *Absences
}

// NewDeployed makes a Deployed. namespace is the namespace of the node agents.
func NewDeployed(reader client.Reader, namespace string, now func() time.Time) *Deployed {
	return &Deployed{reader: reader, namespace: namespace, absences: NewAbsences(now, Grace)}
}

// HasAgent reports whether a node has an agent. If it does not, left is how long it may still be that
// the agent is only being replaced. A pod without a node has nothing to restart, so the result is true for it.
func (d *Deployed) HasAgent(ctx context.Context, node string) (there bool, left time.Duration, err error) {
	if node == "" {
		return true, 0, nil
	}
	pods, err := PodsOnNode(ctx, d.reader, d.namespace, node)
	if err != nil {
		return false, 0, err
	}
	there = len(pods) > 0
	return there, d.absences.RemainingGrace(node, there), nil
}
