// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

// Place is the zone and the region of a node.
type Place struct{ Zone, Region string }

// Topology has the place of each node, from its labels, and the facts of the node that policies read.
type Topology struct {
	withLabels bool

	mu      sync.RWMutex
	places  map[string]Place
	labels  map[string]map[string]string
	nodes   map[string]*rollout.NodeFacts
	version uint64
}

// NewTopology makes a Topology without nodes. The facts of its nodes have no labels.
func NewTopology() *Topology {
	return &Topology{places: map[string]Place{}, labels: map[string]map[string]string{}, nodes: map[string]*rollout.NodeFacts{}}
}

// NewTopologyWithLabels makes a Topology whose nodes have their labels among their facts, for a kind that puts a
// pod on each node.
func NewTopologyWithLabels() *Topology {
	t := NewTopology()
	t.withLabels = true
	return t
}

// NodePlace is the place of a node, empty if it is not known.
func (t *Topology) NodePlace(node string) Place {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.places[node]
}

// NodeLabel is the value of any label of a node, "" if it has none.
func (t *Topology) NodeLabel(node, key string) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.labels[node][key]
}

// Version changes whenever the place of a node changes.
func (t *Topology) Version() uint64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.version
}

// ObserveNode records what policies and the order of deletions read of a node. It reports whether the facts that
// policies read have changed.
func (t *Topology) ObserveNode(n *corev1.Node) (changed bool) {
	now := t.nodeFacts(n)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recordPlace(n.Name, n.Labels)
	if old := t.nodes[n.Name]; old == nil || !reflect.DeepEqual(old, now) {
		t.nodes[n.Name], changed = now, true
	}
	return changed
}

// AssumePlace records the labels that a node is known to have before a pod has one. The facts of this node stay unknown.
func (t *Topology) AssumePlace(node string, labels map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recordPlace(node, labels)
}

func (t *Topology) recordPlace(node string, labels map[string]string) {
	p := Place{Zone: labels[corev1.LabelTopologyZone], Region: labels[corev1.LabelTopologyRegion]}
	t.labels[node] = labels
	if old, ok := t.places[node]; !ok || old != p {
		t.places[node] = p
		t.version++
	}
}

func (t *Topology) nodeFacts(n *corev1.Node) *rollout.NodeFacts {
	out := &rollout.NodeFacts{Unschedulable: n.Spec.Unschedulable, Created: unixSeconds(n.CreationTimestamp.Time)}
	if t.withLabels {
		out.Labels = n.Labels
	}
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Status == corev1.ConditionTrue {
			out.Conditions = append(out.Conditions, string(c.Type))
		}
	}
	slices.Sort(out.Conditions)
	return out
}

// NodeFacts are the facts of a node that policies read, nil if the node is not known. The pointer stays the same until they change.
func (t *Topology) NodeFacts(name string) *rollout.NodeFacts {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.nodes[name]
}

// ForgetNode drops a node. A Set keeps the place of the pods on it that it knows.
func (t *Topology) ForgetNode(node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.places, node)
	delete(t.labels, node)
	delete(t.nodes, node)
}

// NodeUnknownReason is the reason of the missing facts of a node.
const NodeUnknownReason = "NodeUnknown"

// missingNode is the missing fact of a pod whose node is not known: the watch has not shown it yet, or it is gone.
func missingNode(name string) decision.MissingFact {
	return decision.MissingFact{
		Fact: "pods[].onNode", Reason: NodeUnknownReason,
		Message: fmt.Sprintf("The node %s is not known: it is new, or it is gone. Rules could look at it, so its pods are held. If it is gone, the garbage collection of pods deletes them.", name),
	}
}
