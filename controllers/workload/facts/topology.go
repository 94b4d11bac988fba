// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Place is where a node is.
type Place struct{ Zone, Region string }

// Topology knows where each node is, from the labels of the nodes.
type Topology struct {
	mu      sync.RWMutex
	places  map[string]Place
	labels  map[string]map[string]string
	version uint64
}

// NewTopology makes a Topology without nodes.
func NewTopology() *Topology {
	return &Topology{places: map[string]Place{}, labels: map[string]map[string]string{}}
}

// Of is the place of a node, empty if it is not known.
func (t *Topology) Of(node string) Place {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.places[node]
}

// Label is the value of any label of a node, "" if it has none.
func (t *Topology) Label(node, key string) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.labels[node][key]
}

// Version changes whenever a node's place does.
func (t *Topology) Version() uint64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.version
}

// Observe records a node's labels.
func (t *Topology) Observe(node string, labels map[string]string) {
	p := Place{Zone: labels[corev1.LabelTopologyZone], Region: labels[corev1.LabelTopologyRegion]}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.labels[node] = labels
	if old, ok := t.places[node]; !ok || old != p {
		t.places[node] = p
		t.version++
	}
}

// Forget drops a node. Pods that were on it keep what they knew until they go.
func (t *Topology) Forget(node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.places, node)
	delete(t.labels, node)
}
