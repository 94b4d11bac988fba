// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Buffer keeps the latest records, bounded by number and by size. It is an
// engine.Sink.
type Buffer struct {
	maxCount, maxBytes int

	mu       sync.RWMutex
	ring     []kept // n records, from first on; it grows up to maxCount
	first, n int
	bytes    int
	latest   map[key]*state
	watchers []*watcher
}

type kept struct {
	record decision.Record
	bytes  int
}

// key is the point and subject that a state is kept for.
type key struct {
	point                        decision.Name
	group, kind, namespace, name string
}

// state is the latest decision of a point about a subject.
type state struct {
	id     uint64
	digest string
	record decision.Record
}

type watcher struct{ f func(Change) }

// Change is a decision that differs from the previous one about the same subject: in its outcome, its
// verdict or the rules that gave reasons, but not only in numbers or wording.
type Change struct {
	// Before is the previous decision; nil if there is none, or if it is not remembered.
	Before *decision.Record
	After  decision.Record
}

// BufferOption changes how much a buffer keeps.
type BufferOption func(*Buffer)

// WithCount sets how many records are kept.
func WithCount(n int) BufferOption { return func(b *Buffer) { b.maxCount = max(n, 1) } }

// WithBytes sets how much memory records may take, roughly.
func WithBytes(n int) BufferOption { return func(b *Buffer) { b.maxBytes = n } }

// DefaultBytes is how much memory the records of a buffer may take.
const DefaultBytes = 64 << 20

// NewBuffer makes an empty buffer.
func NewBuffer(opts ...BufferOption) *Buffer {
	b := &Buffer{maxCount: 10_000, maxBytes: DefaultBytes, latest: map[key]*state{}}
	for _, o := range opts {
		o(b)
	}
	return b
}

// RecordDecision keeps a record, and forgets the oldest ones to make room.
func (b *Buffer) RecordDecision(r decision.Record) {
	k, d, bytes := keyOf(r), decisionDigest(r), MemorySize(r)
	b.mu.Lock()
	for b.n > 0 && (b.n >= b.maxCount || b.bytes+bytes > b.maxBytes) {
		b.dropOldest()
	}
	b.pushRecord(kept{r, bytes})
	before := b.latest[k]
	b.latest[k] = &state{r.ID, d, r}
	changed := before == nil || before.digest != d
	watchers := slices.Clone(b.watchers)
	b.mu.Unlock()
	if !changed {
		return
	}
	c := Change{After: r}
	if before != nil {
		c.Before = &before.record
	}
	for _, w := range watchers { // after the unlock, since watchers may use the buffer
		w.f(c)
	}
}

// pushRecord adds a record after the others. The ring has at most maxCount entries, and the caller has made
// room.
func (b *Buffer) pushRecord(k kept) {
	if b.n == len(b.ring) {
		ring := make([]kept, min(max(2*len(b.ring), 16), b.maxCount))
		copy(ring[copy(ring, b.ring[b.first:]):], b.ring[:b.first])
		b.ring, b.first = ring, 0
	}
	b.ring[(b.first+b.n)%len(b.ring)] = k
	b.n++
	b.bytes += k.bytes
}

func (b *Buffer) dropOldest() {
	old := &b.ring[b.first]
	if k := keyOf(old.record); b.latest[k] != nil && b.latest[k].id == old.record.ID {
		delete(b.latest, k)
	}
	b.bytes -= old.bytes
	*old = kept{}
	b.first = (b.first + 1) % len(b.ring)
	if b.n--; b.n == 0 {
		b.first = 0
	}
}

// OnChange calls f for each decision that changed, before the caller gets the
// decision, so f must be quick. The returned function stops the calls.
func (b *Buffer) OnChange(f func(Change)) (stop func()) {
	w := &watcher{f}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchers = append(b.watchers, w)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.watchers = slices.DeleteFunc(b.watchers, func(o *watcher) bool { return o == w })
	}
}

// Query selects records; an empty field selects all.
type Query struct {
	Point   decision.Name
	Subject decision.Subject
	Outcome decision.Outcome
	// Since is the earliest time.
	Since time.Time
	Limit int
}

func (q Query) matchesRecord(r *decision.Record) bool {
	one := func(want, got string) bool { return want == "" || want == got }
	return !r.Time.Before(q.Since) && one(string(q.Point), string(r.Point)) && one(string(q.Outcome), string(r.Outcome)) &&
		one(q.Subject.Group, r.Subject.Group) && one(q.Subject.Kind, r.Subject.Kind) && one(q.Subject.Namespace, r.Subject.Namespace) &&
		one(q.Subject.Name, r.Subject.Name) && one(q.Subject.UID, r.Subject.UID)
}

// FindRecords lists records, the latest first.
func (b *Buffer) FindRecords(q Query) []decision.Record {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []decision.Record
	for i := b.n - 1; i >= 0; i-- {
		r := &b.ring[(b.first+i)%len(b.ring)].record
		if !q.matchesRecord(r) {
			continue
		}
		if out = append(out, *r); len(out) == q.Limit {
			break
		}
	}
	return out
}

// LatestRecord is the latest decision of a point about a subject.
func (b *Buffer) LatestRecord(point decision.Name, s decision.Subject) (decision.Record, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if st := b.latest[key{point, s.Group, s.Kind, s.Namespace, s.Name}]; st != nil && (s.UID == "" || st.record.Subject.UID == s.UID) {
		return st.record, true
	}
	return decision.Record{}, false
}

// Len returns how many records are kept, and roughly how many bytes they take.
func (b *Buffer) Len() (records, bytes int) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.n, b.bytes
}

func keyOf(r decision.Record) key {
	return key{r.Point, r.Subject.Group, r.Subject.Kind, r.Subject.Namespace, r.Subject.Name}
}

// decisionDigest is the part of a decision whose change is reported. Messages have numbers in them and
// the ends of holds change with time, so neither counts.
func decisionDigest(r decision.Record) string {
	v := decision.VerdictOf(r)
	parts := []string{string(r.Outcome), v.Word, r.Subject.UID}
	for _, h := range v.Reasons {
		line := []string{h.Rule, h.Reason, h.Namespace, h.Pod}
		for _, k := range sortedKeys(h.Where) {
			line = append(line, k, h.Where[k])
		}
		parts = append(parts, strings.Join(line, "\x00"))
	}
	slices.Sort(parts[3:])
	return strings.Join(slices.Compact(parts), "\x01")
}
