// SPDX-License-Identifier: Apache-2.0

package module

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/regatta-sh/regatta/engine/recovery"
)

const (
	// lanePatience is how long a compilation has a lane to itself. Policies of usual size take 20 to 80 ms of processor time, and
	// the chart's limit allows a fifth of a processor.
	lanePatience = 10 * time.Second
	// laneWait is how long a compilation waits for its turn.
	laneWait = 30 * time.Second
	// mostAside bounds how many compilations continue outside the lane.
	mostAside = 3
)

// ErrBusy reports that policies cannot be compiled, since too many other compilations do not end.
var ErrBusy = errors.New("other policies are being compiled, and that does not end; restart the process without the bundles that were put in last")

// Lane serializes compilations, since many at once would take too much memory. OPA cannot stop a compilation, and a few lines of
// rules, such as nested comprehensions, can make one that does not end. So a compilation that takes long leaves the lane: it
// continues, and the next one begins. At most mostAside compilations are outside the lane at a time.
type Lane struct {
	slot chan struct{}
	// patience and wait are lanePatience and laneWait, except in tests.
	patience, wait atomic.Int64
	mu             sync.Mutex
	aside          int
}

// ProcessLane is the lane of all compilations of the process.
func ProcessLane() *Lane { return lane }

// NewLane makes a lane that is free.
func NewLane() *Lane {
	l := &Lane{slot: make(chan struct{}, 1)}
	l.SetTimes(lanePatience, laneWait)
	return l
}

// SetTimes sets how long a compilation has the lane to itself, and how long the next waits for it at most.
func (l *Lane) SetTimes(patience, wait time.Duration) {
	l.patience.Store(int64(patience))
	l.wait.Store(int64(wait))
}

// AcquireTurn waits for the turn of a compilation. The caller calls release when the compilation ends; more calls of it do nothing. The
// error is ErrBusy if the turn does not come.
func (l *Lane) AcquireTurn(ctx context.Context) (release func(), err error) {
	late := time.NewTimer(time.Duration(l.wait.Load()))
	defer late.Stop()
	select {
	case l.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-late.C:
		return nil, ErrBusy
	}
	t := &turn{lane: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	t.timer = time.AfterFunc(time.Duration(l.patience.Load()), func() {
		_ = recovery.Call("engine", func() error { // it reports what it recovers
			t.stepAside()
			return nil
		})
	})
	return t.endTurn, nil
}

// turn is the turn of one compilation in a lane.
type turn struct {
	lane            *Lane
	timer           *time.Timer
	aside, released bool
}

// stepAside leaves the lane so that the next compilation begins, or tries again later if too many are outside
// already.
func (t *turn) stepAside() {
	t.lane.mu.Lock()
	defer t.lane.mu.Unlock()
	switch {
	case t.released || t.aside:
	case t.lane.aside < mostAside:
		t.aside = true
		t.lane.aside++
		<-t.lane.slot
	default:
		t.timer.Reset(time.Duration(t.lane.patience.Load()))
	}
}

// endTurn ends the turn.
func (t *turn) endTurn() {
	t.lane.mu.Lock()
	defer t.lane.mu.Unlock()
	if t.released {
		return
	}
	t.released = true
	t.timer.Stop()
	if t.aside {
		t.lane.aside--
	} else {
		<-t.lane.slot
	}
}
