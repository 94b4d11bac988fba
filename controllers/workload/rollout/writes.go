// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// defaultTurn is how long a round goes on beginning writes. What is left then is done in
// the next round, behind the workloads that wait: beside a hundred others that are
// created or updated, each gets on, and its status is never old.
const defaultTurn = 500 * time.Millisecond

// inTurn leaves out what has not begun when the turn is over, but for as many of the
// first as may be under way at once: however slow the rest, a round gets on.
func (r *Round) inTurn(acts []func() error) []func() error {
	out := slices.Clone(acts)
	for i := r.c.writes; i < len(acts); i++ {
		out[i] = func() error {
			if r.c.now().Sub(r.Now) < r.c.turn {
				return acts[i]()
			}
			r.Again(time.Millisecond)
			return nil
		}
	}
	return out
}

// Parallel does acts, as many at once as may be, until the turn is over. One that fails
// does not keep the others from being done.
func (r *Round) Parallel(acts []func() error) error { return parallel(r.c.writes, r.inTurn(acts)) }

// SlowStart does acts in batches: one, then twice as many each time, so that what cannot
// work costs one failed write and not a thousand. Where proven says that the same has
// worked before, it begins with as many as may be under way at once. It stops at the
// first error: what was not tried is tried by the next round.
func (r *Round) SlowStart(proven bool, acts []func() error) error {
	size := 1
	if proven {
		size = r.c.writes
	}
	return slowStart(r.c.writes, size, r.inTurn(acts))
}

// parallel does all acts, at most limit at once, and joins their errors.
func parallel(limit int, acts []func() error) error {
	errs := make([]error, len(acts))
	var g errgroup.Group
	g.SetLimit(max(limit, 1))
	for i, act := range acts {
		g.Go(func() error { errs[i] = act(); return nil })
	}
	_ = g.Wait() // each act keeps its own error
	return errors.Join(errs...)
}

// slowStart does acts in batches of size, twice that and so on, and from limit on as
// parallel does.
func slowStart(limit, size int, acts []func() error) error {
	for ; size < limit && len(acts) > 0; size *= 2 {
		n := min(size, len(acts))
		if err := parallel(limit, acts[:n]); err != nil {
			return err
		}
		acts = acts[n:]
	}
	var failed atomic.Bool
	careful := make([]func() error, len(acts))
	for i, act := range acts {
		careful[i] = func() error {
			if failed.Load() {
				return nil
			}
			err := act()
			if err != nil {
				failed.Store(true)
			}
			return err
		}
	}
	return parallel(limit, careful)
}
