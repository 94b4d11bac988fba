// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A round that ended with a conflict is repeated soon, since the cache will soon show what the other client wrote: after 50 ms, and after
// twice as long each time. Conflicts rarely occur more than twice in a row. A webhook that answers 409 refuses each time, so more than
// MostLostRaces conflicts in a row are a failure: it is logged, and repeated, as any other.
const (
	raceDelay = 50 * time.Millisecond
	// MostLostRaces is how many rounds in a row may lose a race before that is a failure.
	MostLostRaces = 5
)

// races counts the rounds of a request in a row that lost a race.
type races struct {
	before int
	lost   bool // by the round that is running
}

type racesKey struct{}

// LoseRace counts a race for an object that the round of a context lost to another client. It returns when to repeat the round. ok is
// false if so many rounds in a row lost a race that this is a failure. Without a Retrier, each race counts as the first.
func LoseRace(ctx context.Context, err error) (again time.Duration, ok bool) {
	r, _ := ctx.Value(racesKey{}).(*races)
	if r == nil {
		r = &races{}
	}
	if r.before >= MostLostRaces {
		r.lost = true
		return 0, false
	}
	again = raceDelay << r.before
	if !r.lost {
		r.lost = true
		ctrl.LoggerFrom(ctx).V(4).Info("Lost a race for an object", "error", err.Error(), "again", again)
	}
	return again, true
}

// beginRaces starts to count the races that a round loses.
func (r *Retrier) beginRaces(ctx context.Context, req reconcile.Request) (context.Context, *races) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := &races{before: r.races[req]}
	return context.WithValue(ctx, racesKey{}, now), now
}

// endRaces stores how many rounds in a row have lost a race. The caller holds the lock.
func (r *Retrier) endRaces(req reconcile.Request, now *races) {
	if !now.lost {
		delete(r.races, req)
		return
	}
	r.races[req] = min(now.before+1, MostLostRaces)
}
