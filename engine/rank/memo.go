// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// memo is what is remembered of one workload.
type memo struct {
	mu       sync.Mutex
	revision string
	workload ast.Value
	strategy ast.Value
	pods     map[string]*entry
	round    uint64
	// shape is what all places that are remembered have in common.
	descending []int
	key, lead  int
	// rows counts the places that are held in memory, alive or not: those of
	// one batch share their memory. bytes is what they take, and alive is what
	// those that pods have take.
	rows, bytes, alive int
	// asked is what the circumstances take.
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

// row is a place: what is compared, with descending positions negated, and the
// holds of the pod.
type row struct {
	key, lead []float64
	holds     []decision.Hold
}

// resetIfChanged drops everything unless it was learned under the same circumstances.
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

// recallPlaces fills in the places that are remembered and lists the pods that have
// none.
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

// rememberPlaces remembers the places of some pods and fills them in.
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

// compactPlaces frees the memory of places that no pod has any more.
func (m *memo) compactPlaces() {
	entries := make([]entry, 0, len(m.pods))
	flat := make([]float64, 0, len(m.pods)*(m.key+m.lead))
	take := func(from []float64) []float64 {
		start := len(flat)
		flat = append(flat, from...)
		return flat[start:len(flat):len(flat)]
	}
	for uid, e := range m.pods {
		moved := *e // an order that was given away has the old one
		moved.key, moved.lead = take(e.key), take(e.lead)
		entries = append(entries, moved)
		m.pods[uid] = &entries[len(entries)-1]
	}
	m.rows, m.bytes = len(m.pods), m.alive
}

// fillPlaces makes rows of an answer. They are copies, because a record keeps the
// answer as it was; positions that descend are negated in them, once, instead of
// at every comparison.
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

// holdsOf are the holds of a pod, those that are limited most first. One that leaves out the pod or the namespace is of each.
func holdsOf(holds map[podName][]decision.Hold, namespace, name string) (out []decision.Hold) {
	for _, pod := range []string{name, ""} {
		if namespace != "" {
			out = append(out, holds[podName{namespace, pod}]...)
		}
		out = append(out, holds[podName{name: pod}]...)
	}
	return slices.Clip(out)
}

// podName is what a hold names: the pod in one namespace, each pod of the name where the namespace is empty, and each of the namespace
// where the name is.
type podName struct{ namespace, name string }
