// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

// Place is the zone and the region of a node.
type Place struct{ Zone, Region string }

// Topology has the place of each node, from the labels of the nodes.
type Topology struct {
	mu      sync.RWMutex
	places  map[string]Place
	labels  map[string]map[string]string
	nodes   map[string]*rollout.NodeFacts
	version uint64
}

// NewTopology makes a Topology without nodes.
func NewTopology() *Topology {
	return &Topology{places: map[string]Place{}, labels: map[string]map[string]string{}, nodes: map[string]*rollout.NodeFacts{}}
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

// ObserveLabels records a node's labels.
func (t *Topology) ObserveLabels(node string, labels map[string]string) {
	p := Place{Zone: labels[corev1.LabelTopologyZone], Region: labels[corev1.LabelTopologyRegion]}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.labels[node] = labels
	if old, ok := t.places[node]; !ok || old != p {
		t.places[node] = p
		t.version++
	}
}

// ObserveNode records all facts of a node that policies read.
func (t *Topology) ObserveNode(n *corev1.Node) {
	t.ObserveLabels(n.Name, n.Labels)
	now := nodeFacts(n)
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.nodes[n.Name]; old == nil || !reflect.DeepEqual(old, now) {
		t.nodes[n.Name] = now
	}
}

func nodeFacts(n *corev1.Node) *rollout.NodeFacts {
	out := &rollout.NodeFacts{Labels: n.Labels, Unschedulable: n.Spec.Unschedulable}
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Status == corev1.ConditionTrue {
			out.Conditions = append(out.Conditions, string(c.Type))
		}
	}
	slices.Sort(out.Conditions)
	return out
}

// unknown are the facts of a node that is gone.
var unknown = &rollout.NodeFacts{}

// NodeFacts are the facts of a node that policies read. The pointer stays the same until they change.
func (t *Topology) NodeFacts(name string) *rollout.NodeFacts {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if n := t.nodes[name]; n != nil {
		return n
	}
	return unknown
}

// ForgetNode drops a node. Pods on it keep their place until they are deleted.
func (t *Topology) ForgetNode(node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.places, node)
	delete(t.labels, node)
	delete(t.nodes, node)
}
