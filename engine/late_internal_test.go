// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"sync/atomic"
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
		if err := e.ActivateBundles(ctx, set); !errors.As(err, new(UnfitError)) || !errors.As(err, new(SlowError)) {
			t.Errorf("while it is compiled: %v", err)
		}
		cancel()
	}
	e.views.limit.Store(int64(compileLimit))
	e.views.cacheView(&compiledView{revision: "other", bytes: e.views.most}, false) // which no check pushes out
	release()
	select {
	case <-late:
	case <-time.After(5 * time.Second):
		t.Fatal("that they are compiled is not reported")
	}
	if len(e.views.of) != 1 {
		t.Errorf("%d views are kept", len(e.views.of))
	}
	if err := e.ActivateBundles(t.Context(), set); err != nil {
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
	if err := e.ActivateBundles(t.Context(), bundle.Set{holds(t, "shop", "y")}); err != nil {
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
	if err := e.ActiveSnapshot().NamespaceProblem("shop"); err != nil {
		t.Errorf("its bundles have a problem: %v", err)
	}
	both := bundle.Set{holds(t, "shop", "y"), holds(t, "bank", "y")}
	if err := e.ActivateBundles(t.Context(), both); !errors.Is(err, module.ErrBusy) || errors.As(err, new(UnfitError)) {
		t.Errorf("putting in one more: %v", err)
	}
	release()
	if rec := decide(); rec.Outcome != decision.Decided {
		t.Errorf("later a decision is %s: %s", rec.Outcome, rec.Error)
	}
	if err := e.ActivateBundles(t.Context(), both); err != nil {
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
		if got := spared.findSnapshot(t.Context(), now, time.Minute); got != step.want || asked != step.asked {
			t.Errorf("%s later, %v: got %p, asked %d times, want %d", step.after, step.failed, got, asked, step.asked)
		}
	}
	wrong := &sparedSnapshot{compile: func() (*Snapshot, error) { asked++; return nil, errors.New("it does not compile") }}
	for range 2 {
		if got := wrong.findSnapshot(t.Context(), now, time.Minute); got != nil || asked != 4 {
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
		if got := spared.findSnapshot(t.Context(), time.Now(), time.Millisecond); got != nil {
			t.Errorf("before it is compiled it is %p", got)
		}
	}
	close(end)
	if got := spared.findSnapshot(t.Context(), time.Now(), time.Minute); got != want || len(asked) != 1 {
		t.Errorf("then it is %p, compiled %d times", got, len(asked))
	}
}

// No caller that has gone waits for it.
func TestACallerThatHasGoneDoesNotWaitForWhatDecidesWithoutWithheldBundles(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	spared := &sparedSnapshot{compile: func() (*Snapshot, error) { <-end; return &Snapshot{}, nil }}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	if got := spared.findSnapshot(ctx, began, time.Minute); got != nil || time.Since(began) > 30*time.Second {
		t.Errorf("it is %p after %s", got, time.Since(began))
	}
}

// A panic of the compiler is an error of one compilation: it says nothing about the bundles that decide without those that are withheld,
// so that these are compiled again after a while. The compiler panics in the goroutine that compiles for all callers.
func TestAPanicOfACompilationWithoutWithheldBundlesIsAnError(t *testing.T) {
	e, now, fine := builtinEngine(t), time.Now(), plainHold(t, "fine")
	panics := addUnruly(fine)
	s, err := e.compileSnapshot(t.Context(), bundle.Set{plainHold(t, "withheld").WithheldCopy(), fine}, nil)
	if err != nil {
		t.Fatal(err)
	}
	panics.Store(true)
	for range 3 {
		if got := s.spared.findSnapshot(t.Context(), now, time.Minute); got != nil {
			t.Errorf("though the compiler panics it is %p", got)
		}
	}
	panics.Store(false)
	if got := s.spared.findSnapshot(t.Context(), now, time.Minute); got != nil {
		t.Error("it was compiled again at once")
	}
	if got := s.spared.findSnapshot(t.Context(), now.Add(sparedAgain), time.Minute); got == nil {
		t.Error("it is not compiled a minute later")
	}
}

// The same holds for the bundles of a namespace that decide: decisions are strict fallbacks until they are compiled again.
func TestAPanicOfTheCompilerIsNoVerdictOnTheBundlesOfANamespace(t *testing.T) {
	e, own := builtinEngine(t, WithPatience(60)), holds(t, "shop", "y")
	panics := addUnruly(own)
	if err := e.ActivateBundles(t.Context(), bundle.Set{own}); err != nil {
		t.Fatal(err)
	}
	want := func(outcome decision.Outcome) {
		t.Helper()
		_, rec := Decide(t.Context(), e, rollout.PlanPoint(), decision.Subject{Namespace: "shop", Name: "web"}, plan("y"))
		if rec.Outcome != outcome {
			t.Errorf("a decision is %s, want %s: %s", rec.Outcome, outcome, rec.Error)
		}
	}
	want(decision.Decided)
	forget(e)
	panics.Store(true)
	want(decision.Failed)
	panics.Store(false)
	want(decision.Failed) // it is not compiled with each decision
	scope := e.ActiveSnapshot().scopes["shop"]
	if at := scope.again.Load(); at == nil || time.Until(*at) > sparedAgain {
		t.Fatalf("it is compiled again at %v", at)
	}
	scope.again.Store(&time.Time{})
	want(decision.Decided)
	if err := e.ActiveSnapshot().NamespaceProblem("shop"); err != nil {
		t.Errorf("its bundles have a problem: %v", err)
	}
}

// unruly is data of a bundle that the compiler panics at while it should.
type unruly struct{ panics *atomic.Bool }

func (u unruly) MarshalJSON() ([]byte, error) {
	if u.panics.Load() {
		panic("x")
	}
	return []byte("1"), nil
}

// addUnruly adds such data to a bundle.
func addUnruly(b *bundle.Bundle) (panics *atomic.Bool) {
	panics = &atomic.Bool{}
	b.Data = map[string]any{"extend": map[string]any{"rollout": map[string]any{b.Name: map[string]any{"unruly": unruly{panics}}}}}
	return panics
}

// plainHold is a bundle of the platform that holds the rollouts of workloads with its name as a label.
func plainHold(t *testing.T, name string, opts ...bundle.Option) *bundle.Bundle {
	t.Helper()
	return read(t, name, map[string]string{"p.rego": "package extend.rollout." + name +
		"\nhold contains {\"reason\": \"R\", \"message\": \"m\"} if input.workload.labels.x == \"" + name + "\""}, opts...)
}
