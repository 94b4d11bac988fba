// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/module"
)

// holdLane has so many compilations in the lane of the process that do not end before release is called.
func holdLane(t *testing.T, many int, wait time.Duration) (release func()) {
	t.Helper()
	lane := module.ProcessLane()
	lane.SetTimes(time.Millisecond, time.Minute)
	var all []func()
	for range many {
		one, err := lane.AcquireTurn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	lane.SetTimes(time.Minute, wait)
	release = func() {
		lane.SetTimes(10*time.Second, 30*time.Second)
		for _, one := range all {
			one()
		}
	}
	t.Cleanup(release)
	return release
}

// inLane is how many compilations do not end where no other one begins.
const inLane = 4

// Bundles of a namespace that are put in again while they are compiled beyond the limit are refused as before: the caller does not wait
// until they are compiled. Once they are, it is called to put them in, and finds them compiled.
func TestBundlesOfANamespaceAreRefusedAgainWhileTheyAreCompiled(t *testing.T) {
	late := make(chan struct{}, 10)
	e := builtinEngine(t, WithPatience(60), WithCompiledLate(func() { late <- struct{}{} }), WithViewBytes(5<<20))
	release := holdLane(t, inLane, time.Minute)
	e.views.limit.Store(int64(5 * time.Millisecond))
	set := bundle.Set{holds(t, "shop", "y")}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if err := e.Activate(ctx, set); !errors.As(err, new(UnfitError)) || !errors.As(err, new(SlowError)) {
			t.Errorf("while it is compiled: %v", err)
		}
		cancel()
	}
	e.views.limit.Store(int64(compileLimit))
	e.views.keep(&view{revision: "other", bytes: e.views.most}, false) // which no check pushes out
	release()
	select {
	case <-late:
	case <-time.After(5 * time.Second):
		t.Fatal("that they are compiled is not reported")
	}
	if len(e.views.of) != 1 {
		t.Errorf("%d views are kept", len(e.views.of))
	}
	if err := e.Activate(t.Context(), set); err != nil {
		t.Error(err)
	}
	if len(e.views.building) != 0 || len(e.views.slowOf) != 0 {
		t.Errorf("in the end, %v are being compiled, %v beyond the limit", e.views.building, e.views.slowOf)
	}
}

// That nothing can be compiled, since others do not end, is no fault of the bundles that wait: they are put in, and decide, once
// something can be.
func TestNothingIsRefusedForBundlesOfOthers(t *testing.T) {
	e := builtinEngine(t, WithPatience(60))
	if err := e.Activate(t.Context(), bundle.Set{holds(t, "shop", "y")}); err != nil {
		t.Fatal(err)
	}
	forget(e)
	release := holdLane(t, inLane, time.Millisecond)
	decide := func() decision.Record {
		_, rec := Decide(t.Context(), e, rollout.PlanPoint(), decision.Subject{Namespace: "shop", Name: "web"}, plan("y"))
		return rec
	}
	if rec := decide(); rec.Outcome != decision.TimedOut {
		t.Errorf("a decision is %s: %s", rec.Outcome, rec.Error)
	}
	if err := e.Snapshot().Problem("shop"); err != nil {
		t.Errorf("its bundles have a problem: %v", err)
	}
	both := bundle.Set{holds(t, "shop", "y"), holds(t, "bank", "y")}
	if err := e.Activate(t.Context(), both); !errors.Is(err, module.ErrBusy) || errors.As(err, new(UnfitError)) {
		t.Errorf("putting in one more: %v", err)
	}
	release()
	if rec := decide(); rec.Outcome != decision.Decided {
		t.Errorf("later a decision is %s: %s", rec.Outcome, rec.Error)
	}
	if err := e.Activate(t.Context(), both); err != nil {
		t.Errorf("putting in one more later: %v", err)
	}
}

// What decides without the bundles that are withheld is looked for again where it could not be compiled for others.
func TestWhatDecidesWithoutWithheldBundlesIsCompiledAgain(t *testing.T) {
	now, failed, asked := time.Now(), error(module.ErrBusy), 0
	want := &Snapshot{}
	spared := &sparedSnapshot{compile: func() (*Snapshot, error) {
		asked++
		if failed != nil {
			return nil, failed
		}
		return want, nil
	}}
	for _, step := range []struct {
		after  time.Duration
		failed error
		want   *Snapshot
		asked  int
	}{
		{0, module.ErrBusy, nil, 1},
		{time.Second, nil, nil, 1},
		{sparedAgain, SlowError{time.Minute}, nil, 2},
		{sparedAgain, nil, want, 3},
		{sparedAgain, module.ErrBusy, want, 3},
	} {
		now, failed = now.Add(step.after), step.failed
		if got := spared.findSnapshot(now, time.Minute); got != step.want || asked != step.asked {
			t.Errorf("%s later, %v: got %p, asked %d times, want %d", step.after, step.failed, got, asked, step.asked)
		}
	}
	wrong := &sparedSnapshot{compile: func() (*Snapshot, error) { asked++; return nil, errors.New("it does not compile") }}
	for range 2 {
		if got := wrong.findSnapshot(now, time.Minute); got != nil || asked != 4 {
			t.Errorf("what does not compile is %p, asked %d times", got, asked)
		}
		now = now.Add(sparedAgain)
	}
}

// No decision waits until what decides without withheld bundles is compiled, which may take long: the whole decides until then.
func TestNoDecisionWaitsForALongCompilationWithoutWithheldBundles(t *testing.T) {
	want, end, asked := &Snapshot{}, make(chan struct{}), make(chan struct{}, 10)
	spared := &sparedSnapshot{compile: func() (*Snapshot, error) { asked <- struct{}{}; <-end; return want, nil }}
	for range 3 {
		if got := spared.findSnapshot(time.Now(), time.Millisecond); got != nil {
			t.Errorf("before it is compiled it is %p", got)
		}
	}
	close(end)
	if got := spared.findSnapshot(time.Now(), time.Minute); got != want || len(asked) != 1 {
		t.Errorf("then it is %p, compiled %d times", got, len(asked))
	}
}

// A panic of the compiler is an error of one compilation.
func TestAPanicOfACompilationWithoutWithheldBundlesIsAnError(t *testing.T) {
	asked, now := 0, time.Now()
	spared := &sparedSnapshot{compile: func() (*Snapshot, error) { asked++; panic("x") }}
	for range 2 {
		if got := spared.findSnapshot(now, time.Minute); got != nil || asked != 1 {
			t.Errorf("it is %p, compiled %d times", got, asked)
		}
	}
	if spared.findSnapshot(now.Add(sparedAgain), time.Minute); asked != 2 {
		t.Errorf("a minute later it was compiled %d times", asked)
	}
}
