// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
)

func TestATenantThatKeepsAskingLeavesWorkersToOthers(t *testing.T) {
	e := newEngine(t, builtin, engine.WithParallel(4), engine.WithShare(1))
	own := strings.NewReplacer("extend.test.freeze", "extend.test.own").Replace(freeze)
	if err := e.ActivateBundles(t.Context(), bundle.Set{tenant(t, "shop", crossProduct), tenant(t, "bank", own)}); err != nil {
		t.Fatal(err)
	}
	stop, leave := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for range 50 {
		asking.Go(func() {
			for stop.Err() == nil {
				// Who leaves before the budget is over is no strike, so this goes on.
				ctx, cancel := context.WithTimeout(stop, 300*time.Millisecond)
				engine.Decide(ctx, e, point(), in("shop"), facts{N: 1})
				cancel()
			}
		})
	}
	defer asking.Wait()
	defer leave()
	outcomes := map[decision.Outcome]int{}
	for range 50 {
		for _, ns := range []string{"bank", "third", ""} {
			_, rec := engine.Decide(t.Context(), e, point(), in(ns), facts{N: 1})
			if outcomes[rec.Outcome]++; rec.Outcome != decision.Decided {
				t.Fatalf("in %q: %s %s", ns, rec.Outcome, rec.Error)
			}
		}
	}
	if outcomes[decision.Decided] != 150 {
		t.Errorf("outcomes %v", outcomes)
	}
}

func TestATenantWhoHadItsShareOfTheProcessorsGetsFallbacks(t *testing.T) {
	w := newWatcher()
	var mu sync.Mutex
	now := time.Unix(1_000_000, 0)
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	e := newEngine(t, builtin, engine.WithObserver(w), engine.WithShare(1e-9), engine.WithClock(clock))
	if err := e.ActivateBundles(t.Context(), bundle.Set{tenant(t, "shop", freeze)}); err != nil {
		t.Fatal(err)
	}
	ask := func(ns string) decision.Record {
		got, rec := engine.Decide(t.Context(), e, point(), in(ns), facts{N: 1, Extra: "friday"})
		if rec.Outcome != decision.Decided && got.Total != -1 {
			t.Errorf("got %+v, want the fallback", got)
		}
		return rec
	}
	if rec := ask("shop"); rec.Outcome != decision.Decided {
		t.Fatalf("the first: %+v", rec)
	}
	if rec := ask("shop"); rec.Outcome != decision.TimedOut || !strings.Contains(rec.Error, "the policies of namespace shop took") {
		t.Errorf("the second: %s %s", rec.Outcome, rec.Error)
	}
	if rec := ask("third"); rec.Outcome != decision.Decided {
		t.Errorf("elsewhere: %s %s", rec.Outcome, rec.Error)
	}
	if _, rec := engine.DecideOn(t.Context(), e, e.ActiveSnapshot(), point().EraseTypes(), in("shop"), facts{N: 1}); rec.Outcome != decision.Decided {
		t.Errorf("aside: %s %s", rec.Outcome, rec.Error)
	}
	mu.Lock()
	now = now.Add(10 * time.Second)
	mu.Unlock()
	if rec := ask("shop"); rec.Outcome != decision.Decided {
		t.Errorf("after a while: %s %s", rec.Outcome, rec.Error)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.throttled) != 1 || w.throttled["shop"] != 1 {
		t.Errorf("told were %v", w.throttled)
	}
}

func TestATenantHasLessMemory(t *testing.T) {
	grow := `package extend.test.grow
hold contains {"reason": "X", "message": "m"} if count([s | some i in numbers.range(1, 1000000); some j in [1, 2, 3, 4, 5, 6, 7, 8, 9]; s := sprintf("%0100d", [i * j])]) == 0`
	e := newEngine(t, builtin, engine.WithMemory(400<<20))
	if err := e.ActivateBundles(t.Context(), bundle.Set{tenant(t, "shop", grow)}); err != nil {
		t.Fatal(err)
	}
	p := point()
	p.Budget = time.Minute
	_, rec := engine.Decide(t.Context(), e, p, in("shop"), facts{N: 1})
	var grown int
	if _, err := fmt.Sscanf(rec.Error, "the evaluation was given up: memory grew by %d MiB", &grown); err != nil || rec.Outcome != decision.TimedOut {
		t.Fatalf("got %s %s", rec.Outcome, rec.Error)
	}
	if grown < 100 || grown >= 400 {
		t.Errorf("it was given up when memory had grown by %d MiB, want a little more than a quarter of 400", grown)
	}
}

func TestTheBuiltinRulesAloneAreNotGivenUpForWhatAnotherTakes(t *testing.T) {
	slow := builtin + `
holds contains {"reason": "Slow", "message": "m"} if {
	some i in numbers.range(1, 3000)
	some j in numbers.range(1, 3000)
	i * j == input.n - 100
}`
	for name, bundles := range map[string]bundle.Set{
		"built-in rules": nil,
		"rules of users": {platform(t, "freeze", freeze)},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, slow, engine.WithMemory(32<<20))
			if err := e.ActivateBundles(t.Context(), bundles); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			records := make(chan decision.Record)
			go func() {
				p := point()
				p.Budget = time.Minute
				_, rec := engine.Decide(ctx, e, p, in("shop"), facts{N: 1})
				records <- rec
			}()
			var ballast [][]byte
			var rec *decision.Record
			for range 60 { // whenever the evaluation begins, the heap grows by more than it may between two looks
				ballast = append(ballast, make([]byte, 40<<20))
				select {
				case got := <-records:
					rec = &got
				case <-time.After(30 * time.Millisecond):
				}
				if rec != nil {
					break
				}
			}
			if rec == nil {
				cancel()
				got := <-records
				rec = &got
			}
			runtime.KeepAlive(ballast)
			if given := strings.Contains(rec.Error, "memory grew"); given != (bundles != nil) {
				t.Errorf("it ended %s %s", rec.Outcome, rec.Error)
			}
		})
	}
}

// Nothing stops an evaluation that does not look at whether it is cancelled, so it must
// count while it runs.
func TestATenantWhoseRuleNeverEndsGetsFallbacksAndIsRolledBack(t *testing.T) {
	for name, budget := range map[string]time.Duration{
		"the caller waits for the answer": time.Second,
		"the caller leaves before":        time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatcher()
			// Its share is used up as soon as something of it counts.
			e := newEngine(t, builtin, engine.WithObserver(w), engine.WithGrace(10*time.Millisecond), engine.WithShare(1e-9))
			fine := strings.Replace(freeze, "extend.test.freeze", "extend.test.own", 1)
			set := bundle.Set{platform(t, "freeze", freeze), tenant(t, "shop", stuck), tenant(t, "bank", fine)}
			if err := e.ActivateBundles(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			end := make(chan struct{})
			defer close(end)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			began := func() {
				if budget > time.Second {
					leave()
				}
			}
			got, rec := engine.Decide(ctx, e, endless(budget, began, end), in("shop"), facts{N: 1})
			if rec.Outcome != decision.TimedOut || got.Total != -1 {
				t.Fatalf("got %+v, %s %s", got, rec.Outcome, rec.Error)
			}
			got, rec = engine.Decide(t.Context(), e, point(), in("shop"), facts{N: 1})
			if rec.Outcome != decision.TimedOut || got.Total != -1 || !strings.Contains(rec.Error, "the policies of namespace shop took") {
				t.Errorf("while it runs: %+v, %s %s", got, rec.Outcome, rec.Error)
			}
			back := until(t, e, w, func() {
				if _, rec := engine.Decide(t.Context(), e, point(), in("third"), facts{N: 1}); rec.Outcome != decision.Decided {
					t.Errorf("elsewhere: %s %s", rec.Outcome, rec.Error)
				}
			})
			if back.Namespace != "shop" {
				t.Errorf("rolled back is %+v", back)
			}
			if got, rec := engine.Decide(t.Context(), e, point(), in("shop"), facts{N: 1}); rec.Outcome != decision.Failed || got.Total != -1 || !strings.Contains(rec.Error, "was rolled back") {
				t.Errorf("after it was rolled back: %+v, %s %s", got, rec.Outcome, rec.Error)
			}
			// What was mended decides, although the other one still runs.
			mended := strings.Replace(fine, "extend.test.own", "extend.test.mended", 1)
			if err := e.ActivateBundles(t.Context(), bundle.Set{platform(t, "freeze", freeze), tenant(t, "shop", mended)}); err != nil {
				t.Fatal(err)
			}
			// On a busy machine the decision compiles the policies, which counts for ten seconds.
			_, rec = engine.Decide(t.Context(), e, point(), in("shop"), facts{N: 1})
			for last := time.Now().Add(30 * time.Second); rec.Outcome == decision.TimedOut && time.Now().Before(last); time.Sleep(20 * time.Millisecond) {
				_, rec = engine.Decide(t.Context(), e, point(), in("shop"), facts{N: 1})
			}
			if rec.Outcome != decision.Decided {
				t.Errorf("after it was mended: %s %s", rec.Outcome, rec.Error)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.stuck != 1 {
				t.Errorf("%d evaluations are stuck", w.stuck)
			}
		})
	}
}
