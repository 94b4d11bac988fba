// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// simulated is a workload whose controller creates and deletes pods at its own pace.
type simulated struct{ counts }

// advance has the controller do something. All pods have the newest revision.
func (w *simulated) advance(t *rapid.T, name string) {
	w.advanceOnce(t, name)
	w.updated = w.existing
}

// advanceOnce has the controller see the spec, or create, delete or make available a pod.
func (w *simulated) advanceOnce(t *rapid.T, name string) {
	switch rapid.IntRange(0, 3).Draw(t, name) {
	case 0:
		w.observed = true
	case 1:
		if w.existing < w.desired {
			w.existing++
		}
	case 2:
		if w.available < w.existing {
			w.available++
		}
	case 3:
		if w.existing > w.desired {
			w.existing--
			w.available = min(w.available, w.existing)
		}
	}
}

func (w *simulated) scale(n int) {
	if n != w.desired {
		w.desired, w.observed = n, false
	}
}

// However slow the controllers are, no fewer pods are available than before, no more exist than before and a step, and the
// migration ends, also if it turns round in the middle.
func TestNoMoveTakesAPodAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total, step := rapid.IntRange(0, 12).Draw(t, "total"), rapid.IntRange(1, 15).Draw(t, "step")
		turn := rapid.IntRange(0, 60).Draw(t, "turn")
		from, to := &simulated{counts{total, total, total, total, true}}, &simulated{counts{observed: true}}
		for i := range 100 * (total + 2) {
			if i == turn {
				from, to = to, from
			}
			next := nextMove(total, step, from.counts, to.counts, to.available)
			if next.done {
				if from.existing > 0 || to.available < total {
					t.Fatalf("done with %+v and %+v", from, to)
				}
				return
			}
			if next.source != from.desired && next.target != to.desired {
				t.Fatalf("%+v changes both of %+v and %+v", next, from, to)
			}
			from.scale(next.source)
			to.scale(next.target)
			from.advance(t, "from")
			to.advance(t, "to")
			if from.available+to.available < total {
				t.Fatalf("%d pods of %d are available: %+v, %+v", from.available+to.available, total, from, to)
			}
			if from.existing+to.existing > total+step {
				t.Fatalf("%d pods exist, want %d at most: %+v, %+v", from.existing+to.existing, total+step, from, to)
			}
		}
		for range 20 * (total + 2) { // controllers that do what is asked
			next := nextMove(total, step, from.counts, to.counts, to.available)
			if next.done {
				return
			}
			from.scale(next.source)
			to.scale(next.target)
			for _, w := range []*simulated{from, to} {
				w.existing, w.available, w.updated, w.observed = w.desired, w.desired, w.desired, true
			}
		}
		t.Fatalf("the migration does not end: %+v, %+v", from, to)
	})
}

// Pods that become available and fail again keep pods of the source, or bring them back.
func TestPodsThatFailBringTheOldOnesBack(t *testing.T) {
	source, target := counts{desired: 3, existing: 3, available: 3, updated: 3, observed: true}, counts{desired: 3, existing: 3, available: 3, updated: 3, observed: true}
	steady, now := steadiness{least: 5 * time.Second}, time.Unix(0, 0)
	look := func(after time.Duration) move {
		now = now.Add(after)
		return nextMove(3, 3, source, target, steady.observeCount(now, target.available))
	}
	if got := look(0); got != (move{source: 3, target: 3}) {
		t.Errorf("after one look %+v, want no move", got)
	}
	target.available = 0
	look(3 * time.Second)
	target.available = 3
	if got := look(3 * time.Second); got != (move{source: 3, target: 3}) {
		t.Errorf("3 s after the pods failed %+v, want no move", got)
	}
	if got := look(6 * time.Second); got != (move{source: 0, target: 3}) {
		t.Errorf("6 s later %+v, want the pods of the source to go", got)
	}
	source = counts{observed: true}
	target.available = 1
	if got := look(time.Second); got != (move{source: 2, target: 3}) {
		t.Errorf("with one pod of the target %+v, want two of the source", got)
	}
}

// What comes and goes is no progress: a migration whose pods flap ends.
func TestFlappingPodsAreNoProgress(t *testing.T) {
	begin := time.Unix(0, 0)
	p := progress{existing: 3, at: begin}
	for i := range 10 {
		p.updateProgress(begin.Add(time.Duration(i)*time.Second), counts{existing: 3}, counts{available: i % 2})
	}
	if want := begin.Add(time.Second); !p.at.Equal(want) {
		t.Errorf("the last progress was at %s, want %s", p.at, want)
	}
	p.updateProgress(begin.Add(time.Minute), counts{existing: 2}, counts{})
	if !p.at.Equal(begin.Add(time.Minute)) {
		t.Error("a pod of the source that went is no progress")
	}
}
