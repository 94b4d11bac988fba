// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/module"
)

// nested is a bundle with comprehensions in each other, of which each one more takes the compiler three to four times as long.
func nested(t *testing.T, depth int) *bundle.Bundle {
	t.Helper()
	return read(t, "slow", map[string]string{"p.rego": "package extend.rollout.slow\nhold contains {\"reason\": \"R\", \"message\": \"m\"} if count(x) > 1\nx := " +
		strings.Repeat("[y | y := ", depth) + "1" + strings.Repeat("]", depth)})
}

// A bundle of the platform that takes too long to be compiled is refused alone: others are put in meanwhile, and decide. It is put
// in once it is compiled after all.
func TestABundleThatTakesLongToCompileIsRefusedAlone(t *testing.T) {
	late := make(chan struct{}, 1)
	e := builtinEngine(t, WithPatience(60), WithCompiledLate(func() { late <- struct{}{} }))
	lane := module.ProcessLane()
	lane.SetTimes(time.Millisecond, time.Minute)
	defer lane.SetTimes(10*time.Second, 30*time.Second)
	e.views.limit.Store(int64(time.Millisecond))
	slow := nested(t, 11)
	var refused SlowError
	if err := e.Activate(t.Context(), bundle.Set{slow}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "did not end within 1ms") {
		t.Fatalf("the slow one: %v", err)
	}
	e.views.limit.Store(int64(compileLimit))
	other := read(t, "other", map[string]string{"p.rego": "package extend.rollout.other\nhold contains {\"reason\": \"Other\", \"message\": \"m\"} if input.workload.labels.x == \"y\""})
	if err := e.Activate(t.Context(), bundle.Set{other, holds(t, "shop", "z")}); err != nil {
		t.Errorf("others: %v", err)
	}
	if out, rec := Decide(t.Context(), e, rollout.PlanPoint(), decision.Subject{Namespace: "shop", Name: "web"}, plan("y")); rec.Outcome != decision.Decided || len(out.Holds) != 1 {
		t.Errorf("it is %s %s: %+v", rec.Outcome, rec.Error, out.Holds)
	}
	<-late
	if err := e.Activate(t.Context(), bundle.Set{slow}); err != nil {
		t.Errorf("once it is compiled: %v", err)
	}
}

// What is being compiled for ever is not begun again, and what is compiled after all is not compiled again.
func TestWhatIsBeingCompiledIsNotBegunAgain(t *testing.T) {
	late := make(chan struct{}, 2)
	e := builtinEngine(t, WithCompiledLate(func() { late <- struct{}{} }))
	want, end, begun := e.Snapshot().cluster.platform, make(chan struct{}), make(chan struct{}, 10)
	build := func() (*view, error) { begun <- struct{}{}; <-end; return want, nil }
	e.views.limit.Store(int64(time.Millisecond))
	for range 3 {
		if v, err := e.views.buildPlatform(t.Context(), "slow", build); v != nil || !errors.As(err, new(SlowError)) {
			t.Errorf("got %v, %v", v, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the caller has gone"))
	e.views.limit.Store(int64(compileLimit))
	if _, err := e.views.buildPlatform(ctx, "other", build); err == nil || err.Error() != "the caller has gone" {
		t.Errorf("for a caller that has gone: %v", err)
	}
	close(end)
	<-late
	<-late
	var found int
	for _, content := range []string{"slow", "other"} { // the last one is kept
		if len(e.views.slow) == 1 && e.views.slow[content] != nil {
			if v, err := e.views.buildPlatform(t.Context(), content, build); v != want || err != nil {
				t.Errorf("%s: %v, %v", content, v, err)
			}
			found++
		}
	}
	if len(begun) != 2 || found != 1 || len(e.views.slow) != 0 {
		t.Errorf("%d were begun, want 2; %d are found, and %d kept", len(begun), found, len(e.views.slow))
	}
	if _, err := e.views.buildPlatform(t.Context(), "panics", func() (*view, error) { panic("x") }); err == nil {
		t.Error("a panic is no error")
	}
}
