// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	"github.com/regatta-sh/regatta/controllers/workload/batch"
)

// defaultTurn is how long a round goes on beginning writes of one sort, such as creations. What is
// left then is done in the next round, behind the workloads that wait: beside a hundred others that
// are created or updated, each gets on, and its status is never old. Each sort has a turn of its own,
// so that pods that are created keep no others from being moved.
const defaultTurn = 500 * time.Millisecond

// slowAnswers is how many answers a turn is long at least: where the API server is slow or far
// away a round writes no less than elsewhere.
const slowAnswers = 4

// longestTurn is what answers cannot make longer.
const longestTurn = 2 * time.Second

// turnDuration is how long a turn of the round is. What was decided took its time too: where that is
// long, each round would write little and the next one decide it all again.
func (r *Round) turnDuration() time.Duration {
	least := r.writing.Sub(r.Now)
	if r.writers != nil {
		least = max(least, slowAnswers*r.c.window.TypicalLatency())
	}
	return max(r.c.turn, min(least, longestTurn))
}

// atOnce is how many writes the round may have under way, and begins whatever its turn.
func (r *Round) atOnce() (most, always int) {
	if r.writers == nil {
		return r.c.writes, r.c.writes
	}
	return r.c.window.MaxLimit(), r.c.window.CurrentLimit()
}

// inTurn leaves out what has not begun when the turn is over, but for as many of the
// first as may be under way at once: however slow the rest, a round gets on.
func (r *Round) inTurn(acts []func() error) []func() error {
	out := slices.Clone(acts)
	_, always := r.atOnce()
	began, turn := r.c.Now(), r.turnDuration()
	for i, act := range acts {
		do := act
		if i >= always {
			do = func() error {
				if r.c.Now().Sub(began) < turn {
					return act()
				}
				r.RequeueAfter(time.Millisecond)
				return nil
			}
		}
		out[i] = do
		if r.writers != nil {
			out[i] = func() error { return r.writers.RunInTurn(do) }
		}
	}
	return out
}

// RunParallel does acts, as many at once as may be, until their turn is over. One that fails
// does not keep the others from being done. An act must not call Parallel or SlowStart.
func (r *Round) RunParallel(acts []func() error) error {
	most, _ := r.atOnce()
	return batch.RunParallel(most, r.inTurn(acts))
}

// SlowStart does acts in batches: one, then twice as many each time, so that what cannot
// work costs one failed write and not a thousand. Where proven says that the same has
// worked before, it begins with as many as may be under way at once. It stops at the
// first error: what was not tried is tried by the next round.
func (r *Round) SlowStart(proven bool, acts []func() error) error {
	most, always := r.atOnce()
	size := 1
	if proven {
		size = always
	}
	return batch.SlowStart(most, size, r.inTurn(acts))
}
