// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// memo has the remembered places of one workload.
type memo struct {
	mu       sync.Mutex
	revision string
	workload ast.Value
	strategy ast.Value
	pods     map[string]*entry
	round    uint64
	// shape is common to all remembered places.
	descending []int
	key, lead  int
	// rows counts the places in memory, used or not: the places of one batch share their memory. bytes is
	// how many bytes all of them take, and alive how many the used ones take.
	rows, bytes, alive int
	// asked is how many bytes the revision, the workload and the strategy take.
	asked int

	used    uint64 // these two belong to the Ranker
	charged int
}

// entry is the place of one pod.
type entry struct {
	row
	hash  uint64
	round uint64
	bytes int
}

// row is a place: the keys that are compared, with descending positions negated, and the holds of the
// pod.
type row struct {
	key, lead []float64
	holds     []decision.Hold
}

// resetIfChanged drops all places unless they were decided for the same revision, workload and strategy.
func (m *memo) resetIfChanged(revision string, workload, strategy ast.Value) {
	if m.revision == revision && m.workload != nil &&
		ast.Compare(m.workload, workload) == 0 && ast.Compare(m.strategy, strategy) == 0 {
		return
	}
	m.forgetPlaces()
	m.revision, m.workload, m.strategy = revision, workload, strategy
	m.asked = sizeOfValue(workload) + sizeOfValue(strategy)
}

func (m *memo) forgetPlaces() {
	clear(m.pods)
	m.rows, m.bytes, m.alive = 0, 0, 0
}

// countBytes is about how many bytes the memo takes.
func (m *memo) countBytes() int { return memoBytes + m.asked + m.bytes }

// recallPlaces fills in the remembered places and returns the pods that have none.
func (m *memo) recallPlaces(pods Pods, rows []*row) (changed []int) {
	m.round++
	for i := range rows {
		e := m.pods[pods.PodUID(i)]
		if e == nil || e.hash != pods.FactsHash(i) {
			changed = append(changed, i)
			continue
		}
		e.round = m.round
		rows[i] = &e.row
	}
	return changed
}

// canCompare reports whether new places can be compared with remembered ones.
func (m *memo) canCompare(out points.RankOutput) bool {
	if len(m.pods) == 0 || len(out.Keys) == 0 {
		return true
	}
	return len(out.Keys[0]) == m.key && len(out.Lead[0]) == m.lead && slices.Equal(out.Descending, m.descending)
}

// rememberPlaces stores the places of some pods and fills them in.
func (m *memo) rememberPlaces(out points.RankOutput, which []int, pods Pods, rows []*row) {
	m.descending = out.Descending
	if len(out.Keys) > 0 {
		m.key, m.lead = len(out.Keys[0]), len(out.Lead[0])
	}
	out.Holds = decision.CloneHolds(out.Holds)
	entries := make([]entry, len(which))
	fillPlaces(out, which, pods, func(n int) *row { return &entries[n].row })
	for n, i := range which {
		e, uid := &entries[n], pods.PodUID(i)
		rows[i] = &e.row
		e.hash, e.round, e.bytes = pods.FactsHash(i), m.round, sizeOfRow(uid, &e.row)
		if old := m.pods[uid]; old != nil {
			m.alive -= old.bytes
		}
		m.pods[uid] = e
		m.bytes += e.bytes
		m.alive += e.bytes
	}
	m.rows += len(which)
}

// removeGonePods forgets pods that are gone, and frees the memory of places that pods
// had before once it is more than that of the places they have.
func (m *memo) removeGonePods(present int) {
	if len(m.pods) > present {
		for uid, e := range m.pods {
			if e.round != m.round {
				m.alive -= e.bytes
				delete(m.pods, uid)
			}
		}
	}
	if m.rows > 2*len(m.pods)+1000 || m.bytes > 2*m.alive+deadBytes {
		m.compactPlaces()
	}
}

// compactPlaces frees the memory of unused places.
func (m *memo) compactPlaces() {
	entries := make([]entry, 0, len(m.pods))
	flat := make([]float64, 0, len(m.pods)*(m.key+m.lead))
	take := func(from []float64) []float64 {
		start := len(flat)
		flat = append(flat, from...)
		return flat[start:len(flat):len(flat)]
	}
	for uid, e := range m.pods {
		moved := *e // an Order that was returned has the old one
		moved.key, moved.lead = take(e.key), take(e.lead)
		entries = append(entries, moved)
		m.pods[uid] = &entries[len(entries)-1]
	}
	m.rows, m.bytes = len(m.pods), m.alive
}

// fillPlaces makes rows from an answer. Rows are copies, since a record keeps the answer unchanged;
// descending positions are negated once in the copies, and not at every comparison.
func fillPlaces(out points.RankOutput, which []int, pods Pods, at func(n int) *row) {
	holds := make(map[podName][]decision.Hold, len(out.Holds))
	for _, h := range out.Holds {
		name := podName{h.Namespace, h.Pod}
		holds[name] = append(holds[name], h)
	}
	key, lead := 0, 0
	if len(out.Keys) > 0 {
		key, lead = len(out.Keys[0]), len(out.Lead[0])
	}
	flat := make([]float64, 0, len(which)*(key+lead))
	for n, i := range which {
		start := len(flat)
		flat = append(flat, out.Keys[n]...)
		for _, d := range out.Descending {
			if d >= 0 && d < key {
				flat[start+d] = -flat[start+d]
			}
		}
		middle := len(flat)
		flat = append(flat, out.Lead[n]...)
		r := at(n)
		r.key, r.lead = flat[start:middle:middle], flat[middle:len(flat):len(flat)]
		if len(holds) > 0 {
			f := pods.PodFacts(i)
			r.holds = holdsOf(holds, f.Namespace, f.Name)
		}
	}
}

// holdsOf returns the holds of a pod, the most specific first. A hold without a pod or a namespace applies to each.
func holdsOf(holds map[podName][]decision.Hold, namespace, name string) (out []decision.Hold) {
	for _, pod := range []string{name, ""} {
		if namespace != "" {
			out = append(out, holds[podName{namespace, pod}]...)
		}
		out = append(out, holds[podName{name: pod}]...)
	}
	return slices.Clip(out)
}

// podName is the pod that a hold names. An empty namespace means pods of the name in every namespace, and an empty name all pods of
// the namespace.
type podName struct{ namespace, name string }
