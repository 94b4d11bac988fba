// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	"github.com/regatta-sh/regatta/controllers/workload/batch"
)

// defaultTurn is how long a round begins writes of one sort, such as creations. Writes that are left
// after that are done in the next round, after the workloads that wait. So a workload makes progress beside a hundred others
// that are created or updated, and its status is never old. Each sort has a turn of its own,
// so that creating pods does not prevent others from being moved.
const defaultTurn = 500 * time.Millisecond

// slowAnswers is the minimum length of a turn in answers: with a slow or distant API server
// a round writes no less than otherwise.
const slowAnswers = 4

// longestTurn bounds a turn that slow answers lengthen.
const longestTurn = 2 * time.Second

// turnDuration is how long a turn of the round is. It is at least as long as the time that the decisions took. Otherwise,
// with slow decisions, each round would write little and the next one decide everything again.
func (r *Round) turnDuration() time.Duration {
	least := r.writing.Sub(r.Now)
	if r.writers != nil {
		least = max(least, slowAnswers*r.c.window.TypicalLatency())
	}
	return max(r.c.turn, min(least, longestTurn))
}

// atOnce returns how many writes the round may have under way, and how many it begins regardless of its turn.
func (r *Round) atOnce() (most, always int) {
	if r.writers == nil {
		return r.c.writes, r.c.writes
	}
	return r.c.window.MaxLimit(), r.c.window.CurrentLimit()
}

// inTurn skips acts that have not begun when the turn is over, except for as many of the
// first ones as may be under way at the same time. So a round makes progress however slow the rest is.
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

// RunParallel does acts in parallel until their turn is over. An act that fails
// does not stop the others. An act must not call RunParallel or SlowStart.
func (r *Round) RunParallel(acts []func() error) error {
	most, _ := r.atOnce()
	return batch.RunParallel(most, r.inTurn(acts))
}

// SlowStart does acts in batches: one, then twice as many each time, so that acts that cannot
// work cost one failed write and not a thousand. If proven is true, the same acts have
// worked before, and it begins with as many as may be under way at the same time. It stops at the
// first error; the next round tries the rest.
func (r *Round) SlowStart(proven bool, acts []func() error) error {
	most, always := r.atOnce()
	size := 1
	if proven {
		size = always
	}
	return batch.SlowStart(most, size, r.inTurn(acts))
}
