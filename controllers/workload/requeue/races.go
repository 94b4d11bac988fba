// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A round that lost a race is repeated soon, for what the other client wrote is on its way: after 50 ms, and after twice as
// long each time. Races are lost once or twice. A webhook that answers 409 refuses each time, so a race beyond MostLostRaces in
// a row is a failure: it is logged, and repeated, as any other.
const (
	raceDelay = 50 * time.Millisecond
	// MostLostRaces is how many rounds in a row may lose a race before that is a failure.
	MostLostRaces = 5
)

// races are those that the rounds of a request have lost in a row.
type races struct {
	before int
	lost   bool // by the round that runs
}

type racesKey struct{}

// LoseRace counts a race for an object that the round of a context lost to another client. It returns when to repeat the round; ok is
// false if so many rounds in a row lost one that this is a failure. Outside a Retrier each is the first.
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

// beginRaces has the races counted that a round loses.
func (r *Retrier) beginRaces(ctx context.Context, req reconcile.Request) (context.Context, *races) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := &races{before: r.races[req]}
	return context.WithValue(ctx, racesKey{}, now), now
}

// endRaces keeps how many rounds in a row have lost a race. The lock is held.
func (r *Retrier) endRaces(req reconcile.Request, now *races) {
	if !now.lost {
		delete(r.races, req)
		return
	}
	r.races[req] = min(now.before+1, MostLostRaces)
}
