// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
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
	if err := e.ActivateBundles(t.Context(), bundle.Set{slow}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "did not end within 1ms") {
		t.Fatalf("the slow one: %v", err)
	}
	e.views.limit.Store(int64(compileLimit))
	other := read(t, "other", map[string]string{"p.rego": "package extend.rollout.other\nhold contains {\"reason\": \"Other\", \"message\": \"m\"} if input.workload.labels.x == \"y\""})
	if err := e.ActivateBundles(t.Context(), bundle.Set{other, holds(t, "shop", "z")}); err != nil {
		t.Errorf("others: %v", err)
	}
	if out, rec := Decide(t.Context(), e, rollout.PlanPoint(), decision.Subject{Namespace: "shop", Name: "web"}, plan("y")); rec.Outcome != decision.Decided || len(out.Holds) != 1 {
		t.Errorf("it is %s %s: %+v", rec.Outcome, rec.Error, out.Holds)
	}
	<-late
	if err := e.ActivateBundles(t.Context(), bundle.Set{slow}); err != nil {
		t.Errorf("once it is compiled: %v", err)
	}
}

// What is being compiled and does not end is not begun again, and what is compiled after all is not compiled again.
func TestWhatIsBeingCompiledIsNotBegunAgain(t *testing.T) {
	late := make(chan struct{}, 2)
	e := builtinEngine(t, WithCompiledLate(func() { late <- struct{}{} }))
	want, end, begun := e.ActiveSnapshot().cluster.platform, make(chan struct{}), make(chan struct{}, 10)
	build := func() (*compiledView, error) { begun <- struct{}{}; <-end; return want, nil }
	e.views.limit.Store(int64(time.Millisecond))
	for range 3 {
		if v, err := e.views.buildPlatform(t.Context(), "slow", []string{"slow"}, build); v != nil || !errors.As(err, new(SlowError)) {
			t.Errorf("got %v, %v", v, err)
		}
	}
	e.views.limit.Store(int64(compileLimit))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the caller has gone"))
	if _, err := e.views.buildPlatform(ctx, "other", []string{"other"}, build); err == nil || err.Error() != "the caller has gone" {
		t.Errorf("for a caller that has gone: %v", err)
	}
	joined := make(chan error) // another caller is not refused for that
	go func() {
		v, err := e.views.buildPlatform(t.Context(), "other", []string{"other"}, build)
		if v != want {
			t.Errorf("the other is %v", v)
		}
		joined <- err
	}()
	close(end)
	if err := <-joined; err != nil {
		t.Errorf("for another caller: %v", err)
	}
	<-late
	<-late
	for _, content := range []string{"slow", "other"} { // both are kept
		if v, err := e.views.buildPlatform(t.Context(), content, nil, build); v != want || err != nil {
			t.Errorf("%s: %v, %v", content, v, err)
		}
	}
	if len(begun) != 2 {
		t.Errorf("%d were begun, want 2", len(begun))
	}
	if _, err := e.views.buildPlatform(t.Context(), "panics", nil, func() (*compiledView, error) { panic("x") }); err == nil {
		t.Error("a panic is no error")
	}
}

// A new bundle of the platform that is compiled beyond the limit is not compiled again with each change of the others. These are.
func TestSlowCompilationsOfOneBundleOfThePlatformAreBounded(t *testing.T) {
	e := builtinEngine(t)
	want, end := e.ActiveSnapshot().cluster.platform, make(chan struct{})
	build := func() (*compiledView, error) { <-end; return want, nil }
	e.views.limit.Store(int64(time.Millisecond))
	for i := range 10 {
		if _, err := e.views.buildPlatform(t.Context(), fmt.Sprint("slow with ", i), []string{"slow"}, build); !errors.As(err, new(SlowError)) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := e.views.buildPlatform(t.Context(), "slow and new", []string{"new", "slow"}, build); !errors.As(err, new(SlowError)) {
		t.Errorf("with another new one: %v", err)
	}
	if len(e.views.platforms) != mostOwnSlow {
		t.Errorf("%d are being compiled", len(e.views.platforms))
	}
	e.views.limit.Store(int64(compileLimit))
	for _, added := range [][]string{nil, {"new"}} {
		if v, err := e.views.buildPlatform(t.Context(), fmt.Sprint("without it ", added), added, func() (*compiledView, error) { return want, nil }); v != want || err != nil {
			t.Errorf("without it, with %v: %v", added, err)
		}
	}
	close(end)
}

// That others were being compiled is not kept as what came of bundles of the platform, and what is not put in is forgotten.
func TestWhatCameOfBundlesOfThePlatformIsNotKeptForLong(t *testing.T) {
	late := make(chan struct{}, 2)
	e := builtinEngine(t, WithCompiledLate(func() { late <- struct{}{} }))
	want := e.ActiveSnapshot().cluster.platform
	e.views.limit.Store(int64(time.Millisecond))
	for _, came := range []error{fmt.Errorf("compiling: %w", module.ErrBusy), nil} {
		end := make(chan struct{})
		if _, err := e.views.buildPlatform(t.Context(), "slow", nil, func() (*compiledView, error) { <-end; return want, came }); !errors.As(err, new(SlowError)) {
			t.Errorf("got %v", err)
		}
		close(end)
		<-late
		b := e.views.platforms["slow"]
		if kept := b != nil; kept != (came == nil) {
			t.Errorf("%v is kept: %v", came, kept)
		}
		if e.views.forgetPlatform("slow", b); len(e.views.platforms) != 0 {
			t.Errorf("kept are %v", e.views.platforms)
		}
	}
}

// Policies that need several compilations beyond the limit, as those of the platform and those with canaries, are put in after as many
// tries: what one of them has compiled is not lost while the next one is compiled.
func TestSeveralSlowCompilationsOfOneSetEnd(t *testing.T) {
	late := make(chan struct{}, 20)
	e := builtinEngine(t, WithCompiledLate(func() { late <- struct{}{} }))
	want := e.ActiveSnapshot().cluster.platform
	e.views.limit.Store(int64(time.Millisecond))
	begun := 0
	for try := range 6 {
		var err error
		for _, content := range []string{"platform", "canary"} {
			end := make(chan struct{})
			_, err = e.views.buildPlatform(t.Context(), content, []string{content}, func() (*compiledView, error) { begun++; <-end; return want, nil })
			close(end)
			if err != nil {
				break
			}
		}
		if err == nil {
			if begun != 2 {
				t.Errorf("%d were begun", begun)
			}
			return
		}
		if !errors.As(err, new(SlowError)) {
			t.Fatalf("try %d: %v", try, err)
		}
		<-late
	}
	t.Errorf("it was never put in; %d were begun", begun)
}

// Of what was compiled beyond the limit only the last is kept.
func TestWhatIsKeptOfSlowCompilationsIsBounded(t *testing.T) {
	late := make(chan struct{}, 20)
	e := builtinEngine(t, WithCompiledLate(func() { late <- struct{}{} }))
	want := e.ActiveSnapshot().cluster.platform
	e.views.limit.Store(int64(time.Millisecond))
	for i := range 3 * mostKeptLate {
		end := make(chan struct{})
		if _, err := e.views.buildPlatform(t.Context(), fmt.Sprint(i), nil, func() (*compiledView, error) { <-end; return want, nil }); !errors.As(err, new(SlowError)) {
			t.Fatalf("got %v", err)
		}
		close(end)
		<-late
		if kept := len(e.views.platforms); kept != min(i+1, mostKeptLate) || e.views.platforms[fmt.Sprint(i)] == nil {
			t.Errorf("%d are kept after %d", kept, i+1)
		}
	}
}

// A set that needs more slow compilations than are kept without a need is put in, as long as each takes: what it needs is not lost for
// what else it needs.
func TestASetWithManySlowCompilationsIsPutIn(t *testing.T) {
	late := make(chan struct{}, 100)
	e := builtinEngine(t, WithPatience(60), WithCompiledLate(func() { late <- struct{}{} }))
	e.views.limit.Store(int64(time.Millisecond))
	set := bundle.Set{plainHold(t, "all")}
	for i := range mostKeptLate + 2 {
		set = append(set, plainHold(t, fmt.Sprint("c", i), bundle.AsCanary(fmt.Sprint("shop", i))))
	}
	other := plainHold(t, "other")
	for try := range 4 * len(set) {
		err := e.ActivateBundles(t.Context(), set)
		if err == nil {
			if len(e.views.asked) > 1 || len(e.views.platforms) > mostKeptLate+1 {
				t.Errorf("then %d sets count as asked for, %d compilations are kept", len(e.views.asked), len(e.views.platforms))
			}
			return
		}
		if !errors.As(err, new(SlowError)) {
			t.Fatalf("try %d: %v", try, err)
		}
		<-late
		if try == 0 { // which another set that is refused does not change
			if err := e.ActivateBundles(t.Context(), bundle.Set{other}); !errors.As(err, new(SlowError)) {
				t.Fatalf("another set: %v", err)
			}
			<-late
		}
	}
	t.Error("it was never put in")
}

// What a set needs is kept for as long as more of it is being compiled, and no longer than what is not needed after that.
func TestWhatASetNeedsIsKeptWhileMoreOfItIsCompiled(t *testing.T) {
	e := builtinEngine(t)
	c := e.views
	b, more := &platformBuild{ended: true, usedAt: time.Now().Add(-time.Hour)}, &platformBuild{}
	c.platforms["one"], c.platforms["more"] = b, more
	if rest := c.findTimeToKeep("one", b); rest > 0 {
		t.Errorf("without a need it is kept for %s", rest)
	}
	c.noteNeeds("set", []string{"one", "more"})
	b.usedAt = time.Now().Add(-time.Hour)
	if rest := c.findTimeToKeep("one", b); rest <= 0 {
		t.Error("it is not kept while more is compiled")
	}
	if more.ended = true; c.findTimeToKeep("one", b) > 0 {
		t.Error("it is kept long after it was asked for")
	}
	if c.noteNeeds("set", []string{"one", "more"}); c.findTimeToKeep("one", b) <= 0 {
		t.Error("it is not kept though it was asked for again")
	}
	for i := range 2 * mostAsked {
		c.noteNeeds(fmt.Sprint(i), nil)
	}
	if len(c.asked) != mostAsked || c.asked[0].revision != fmt.Sprint(2*mostAsked-1) {
		t.Errorf("asked for are %v", c.asked)
	}
	if c.forgetPlatform("one", more); c.platforms["one"] != b {
		t.Error("another one is forgotten")
	}
	if c.forgetPlatform("one", b); c.findTimeToKeep("one", b) != 0 {
		t.Error("what is forgotten is kept")
	}
}
