// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// The delay before the failed pod of a node is deleted and replaced grows with each failure (ADS-03).
const (
	firstBackOff   = time.Second
	longestBackOff = 15 * time.Minute
)

// failure is when a pod of a node was last deleted because it failed.
type failure struct {
	at         time.Time
	delay      time.Duration
	generation int64
}

// backOff is how much longer a failed pod of a node is kept.
func (m *memory) backOff(node string, generation int64, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.failures[node]
	if !ok || f.generation != generation {
		return 0
	}
	return max(f.at.Add(f.delay).Sub(now), 0)
}

// recordFailure notes that a failed pod was deleted. After a long time without a failure the delay is the first one again.
func (m *memory) recordFailure(node string, generation int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.failures[node]
	next := failure{at: now, delay: firstBackOff, generation: generation}
	if ok && f.generation == generation && now.Sub(f.at) < 2*longestBackOff {
		next.delay = min(2*f.delay, longestBackOff)
	}
	m.failures[node] = next
}

// setTriedName notes the name of a pod that may exist though its creation failed; "" once the outcome
// is known.
func (m *memory) setTriedName(node, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == "" {
		delete(m.names, node)
		return
	}
	m.names[node] = name
}

func (m *memory) triedName(node string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.names[node]
}

// countRefusal counts the pods of a node that could not be created in a row.
func (m *memory) countRefusal(node string, refused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !refused {
		delete(m.refused, node)
		return
	}
	m.refused[node]++
}

// sortByRefusals puts the nodes whose pods were refused least often first, and otherwise keeps the order.
func (m *memory) sortByRefusals(nodes []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.SortStableFunc(nodes, func(a, b string) int { return cmp.Compare(m.refused[a], m.refused[b]) })
}

// forgetGoneNodes forgets nodes that are gone.
func (m *memory) forgetGoneNodes(sites []*site) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.failures)+len(m.names)+len(m.refused) == 0 {
		return
	}
	names, failures, refused := map[string]string{}, map[string]failure{}, map[string]int{}
	for _, s := range sites {
		if s.node == nil {
			continue
		}
		if f, ok := m.failures[s.name]; ok {
			failures[s.name] = f
		}
		if name, ok := m.names[s.name]; ok {
			names[s.name] = name
		}
		if n, ok := m.refused[s.name]; ok {
			refused[s.name] = n
		}
	}
	m.names, m.failures, m.refused = names, failures, refused
}

// memory is the state that the controller keeps for a DaemonSet between rounds. It only saves work: losing it changes no decision.
type memory struct {
	mu sync.Mutex // pods are created and deleted in parallel
	// names are the names of pods that may exist though their creation failed, by node.
	names map[string]string
	// failures are the last failures of pods, by node.
	failures map[string]failure
	// refused counts, by node, the pods that could not be created since one could.
	refused map[string]int
	// proven is the revision whose pods could all be created the last time.
	proven string
	// told are the messages that events have reported for a revision.
	told    map[string]bool
	toldFor string
	// total is how many pods there are once this round has created all that its scaling tries to create. missing is how many
	// nodes that should run a pod have none even then.
	total, missing int
}

// noteScaling notes how many pods the scaling of this round leaves, and on how many nodes one is missing.
func (m *memory) noteScaling(total, missing int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total, m.missing = total, missing
}

// readScaling returns how many pods the scaling of this round leaves, and on how many nodes one is missing.
func (m *memory) readScaling() (total, missing int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total, m.missing
}

func newMemory() *memory {
	return &memory{names: map[string]string{}, failures: map[string]failure{}, refused: map[string]int{}, told: map[string]bool{}}
}
