// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"testing"

	"pgregory.net/rapid"
)

// simulated is a workload whose controller creates and deletes pods at its own pace.
type simulated struct{ counts }

// advance has the controller see the spec, or create, delete or make available a pod.
func (w *simulated) advance(t *rapid.T, name string) {
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
			next := nextMove(total, step, from.counts, to.counts)
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
			next := nextMove(total, step, from.counts, to.counts)
			if next.done {
				return
			}
			from.scale(next.source)
			to.scale(next.target)
			for _, w := range []*simulated{from, to} {
				w.existing, w.available, w.observed = w.desired, w.desired, true
			}
		}
		t.Fatalf("the migration does not end: %+v, %+v", from, to)
	})
}
