// SPDX-License-Identifier: Apache-2.0

// Package rank remembers the places that policies gave to pods, so that a workload of ten thousand
// pods costs no more than the ten that changed. It also sorts pods by their places.
package rank

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/term"
)

// Pods are the pods of one workload, by position. It is an interface so that
// facts are made only for those that changed.
type Pods interface {
	Len() int
	// PodUID distinguishes pods, also those of the same name.
	PodUID(i int) string
	// FactsHash changes whenever the facts do; see HashFacts.
	FactsHash(i int) uint64
	PodFacts(i int) points.PodFacts
}

// Ranker decides rollout/rank and remembers the answers: by the revision of the policies, the
// workload, its strategy, and the facts of the pod. It is safe for concurrent use.
type Ranker struct {
	engine *engine.Engine
	point  decision.Point[points.RankInput, points.RankOutput]
	max    int // bytes

	mu        sync.Mutex
	workloads map[string]*memo
	bytes     int    // of all workloads
	clock     uint64 // counts uses, to find the memo that was not used for the longest time
}

// Option changes how much is remembered.
type Option func(*Ranker)

// DefaultBytes bounds the remembered places of all workloads together, in bytes. That is about 50,000 pods that no policy
// holds.
const DefaultBytes = 16 << 20

// WithMaxBytes sets how many bytes the remembered places of all workloads may take together; DefaultBytes if unset. A workload
// that takes more by itself is ranked again each time.
func WithMaxBytes(n int) Option { return func(r *Ranker) { r.max = n } }

// New makes an empty ranker.
func New(e *engine.Engine, opts ...Option) *Ranker {
	r := &Ranker{engine: e, point: points.RankPoint(), max: DefaultBytes, workloads: map[string]*memo{}}
	for _, o := range opts {
		o(r)
	}
	return r
}

// maxBatch is how many pods one decision is asked about at most. All pods of a large workload exceed what one decision may read, return
// and take.
const maxBatch = 2000

// maxRestarts is how often the batches of one workload begin again since other policies became active between two of them. After that
// one decision ranks all pods, so that a round ends however often policies change.
const maxRestarts = 2

// RankPods gives each pod its place. A pod that has missing facts is ranked without them, so the caller must hold it. The policies rank pods without a remembered place, at most 2,000 in a decision. Nothing is
// decided or allocated for a pod that did not change.
func (r *Ranker) RankPods(ctx context.Context, subject decision.Subject, w points.Workload, s points.Strategy, pods Pods) Order {
	m := r.workloadMemo(w.UID)
	m.mu.Lock()
	defer m.mu.Unlock()
	q := &question{ctx: ctx, subject: subject, in: points.RankInput{Workload: w, Strategy: s}, pods: pods}
	if err := r.encodeQuestion(q); err == nil { // otherwise the decision fails, with the error
		m.resetIfChanged(r.engine.ActiveSnapshot().RevisionFor(subject), q.workload, q.strategy)
	}
	o := Order{rows: make([]*row, pods.Len()), Outcome: decision.Decided}
	changed := m.recallPlaces(pods, o.rows)
	if len(changed) > 0 {
		r.rankChanged(q, m, &o, changed)
	}
	m.removeGonePods(pods.Len())
	r.keepWithinBound(w.UID, m)
	return o
}

// question is one call of RankPods.
type question struct {
	ctx                context.Context
	subject            decision.Subject
	in                 points.RankInput
	workload, strategy ast.Value
	pods               Pods
}

func (r *Ranker) encodeQuestion(q *question) (err error) {
	if q.workload, err = r.engine.Codec().Encode(q.in.Workload); err == nil {
		q.strategy, err = r.engine.Codec().Encode(q.in.Strategy)
	}
	return err
}

// rankChanged makes the policies rank the changed pods. The places of each batch are remembered at once, so after a decision that
// fails the next round asks about the rest alone.
func (r *Ranker) rankChanged(q *question, m *memo, o *Order, changed []int) {
	if len(changed) == q.pods.Len() {
		m.forgetPlaces() // none is of use, nor their shape
	}
	for begun, restarts := 0, 0; begun < len(changed); {
		batch := changed[begun:min(begun+maxBatch, len(changed))]
		out, rec := r.decideRank(q, o, batch)
		switch {
		case rec.Outcome != decision.Decided:
			r.useFallback(q, o, out, batch)
			return
		case len(m.pods) > 0 && rec.Revision != m.revision && restarts < maxRestarts: // other policies became active
			restarts++
			m.forgetPlaces()
			changed, begun = allPositions(q.pods.Len()), 0
			continue
		case len(m.pods) > 0 && (rec.Revision != m.revision || !m.canCompare(out)):
			r.rankTogether(q, m, o)
			return
		}
		m.revision = rec.Revision
		m.rememberPlaces(out, batch, q.pods, o.rows)
		begun += len(batch)
	}
}

// rankTogether makes the policies rank all pods in one decision, for places that could not be compared otherwise.
func (r *Ranker) rankTogether(q *question, m *memo, o *Order) {
	m.forgetPlaces()
	all := allPositions(q.pods.Len())
	out, rec := r.decideRank(q, o, all)
	if rec.Outcome != decision.Decided {
		r.useFallback(q, o, out, all)
		return
	}
	m.revision = rec.Revision
	m.rememberPlaces(out, all, q.pods, o.rows)
}

// useFallback gives all pods the places of the default order, since they cannot be compared with those of a policy. They are not
// remembered. out is the fallback for some of the pods.
func (r *Ranker) useFallback(q *question, o *Order, out points.RankOutput, some []int) {
	all := allPositions(q.pods.Len())
	if len(some) < len(all) {
		out = r.point.FallbackAnswer(q.inputFor(all), r.engine.ActiveSnapshot().IsPointExtended(r.point.Name, q.subject))
	}
	rows := make([]row, len(all))
	fillPlaces(out, all, q.pods, func(i int) *row { return &rows[i] })
	for i := range rows {
		o.rows[i] = &rows[i]
	}
}

// inputFor returns the question about some pods. Facts of single pods that are missing are not in it: the caller of RankPods holds
// these pods, and the others are to be ranked.
func (q *question) inputFor(which []int) points.RankInput {
	in := q.in
	in.Pods = make([]points.PodFacts, len(which))
	for n, i := range which {
		in.Pods[n] = points.HidePodMissingFacts(q.pods.PodFacts(i))
	}
	return in
}

// decideRank asks about some pods, and adds the decision to those of the order.
func (r *Ranker) decideRank(q *question, o *Order, which []int) (points.RankOutput, decision.Record) {
	var given []term.Given
	if q.strategy != nil {
		given = []term.Given{{Field: "workload", Value: q.workload}, {Field: "strategy", Value: q.strategy}}
	}
	out, rec := engine.Decide(q.ctx, r.engine, r.point, q.subject, q.inputFor(which), given...)
	o.Records, o.Outcome = append(o.Records, rec), rec.Outcome
	return out, rec
}

func allPositions(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// ForgetWorkload drops the places of a workload that is gone.
func (r *Ranker) ForgetWorkload(workloadUID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetWorkload(workloadUID)
}

func (r *Ranker) forgetWorkload(uid string) {
	if m := r.workloads[uid]; m != nil {
		r.bytes -= m.charged
		delete(r.workloads, uid)
	}
}

// CountBytes is about how many bytes the remembered places of all workloads take.
func (r *Ranker) CountBytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}

func (r *Ranker) workloadMemo(uid string) *memo {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.workloads[uid]
	if m == nil {
		m = &memo{pods: map[string]*entry{}}
		r.workloads[uid] = m
	}
	r.clock++
	m.used = r.clock
	return m
}

// keepWithinBound forgets the workloads that were not ranked for the longest time, or the current one if it takes too much by itself.
// Forgotten places are decided again, so no hold is lost. The caller has locked the memo.
func (r *Ranker) keepWithinBound(uid string, current *memo) {
	if current.countBytes() > r.max {
		current.compactPlaces()
	}
	size := current.countBytes()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.workloads[uid] != current { // it was forgotten meanwhile
		return
	}
	r.bytes += size - current.charged
	current.charged = size
	if size > r.max {
		r.forgetWorkload(uid)
		return
	}
	if r.bytes <= r.max {
		return
	}
	uids := slices.SortedFunc(maps.Keys(r.workloads), func(a, b string) int { return cmp.Compare(r.workloads[a].used, r.workloads[b].used) })
	for _, uid := range uids {
		if r.bytes <= r.max {
			return
		}
		r.forgetWorkload(uid)
	}
}
