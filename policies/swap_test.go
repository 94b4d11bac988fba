// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/test/heap"
	"github.com/regatta-sh/regatta/test/proptest"
)

const deciders = 8

// TestSwappingUnderLoad swaps bundles while decisions are made all the time: none
// fails, each is made by bundles that were active, and in the end there is no more
// than there was.
func TestSwappingUnderLoad(t *testing.T) {
	e, err := engine.New(policies.Builtin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	p := rollout.PlanPoint()
	p.Budget = 30 * time.Second // what is asked is whether it is made; the machine is busy
	in := rollout.PlanInput{Update: 1, MaxUnavailable: 1, Strategy: rollout.Strategy{Type: "RollingUpdate"}}
	var active sync.Map // revisions that are or were active, or will be at once
	active.Store(e.ActiveSnapshot().Revision(), true)
	var made, slowest atomic.Int64
	load := func(during func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var deciding sync.WaitGroup
		for i := range deciders {
			deciding.Go(func() {
				subject := decision.Subject{Kind: "CloneSet", Namespace: fmt.Sprint("ns", i%2), Name: "web"}
				for ctx.Err() == nil {
					plan, rec := engine.Decide(context.Background(), e, p, subject, in)
					if rec.Outcome != decision.Decided || len(plan.Holds) > 1 {
						t.Errorf("%s %s: %+v", rec.Outcome, rec.Error, plan)
					}
					if _, known := active.Load(rec.Revision); !known {
						t.Errorf("revision %s decided and was never active", rec.Revision)
					}
					made.Add(1)
					time.Sleep(time.Millisecond) // or compiling waits for a processor most of all
					for d := int64(rec.Duration); ; {
						was := slowest.Load()
						if d <= was || slowest.CompareAndSwap(was, d) {
							break
						}
					}
				}
			})
		}
		during()
		cancel()
		deciding.Wait()
	}
	set := func(n int) bundle.Set {
		text := fmt.Sprintf("package extend.rollout.x\n\nhold contains {\"reason\": \"N\", \"message\": \"%d\"} if input.update > 0\n", n)
		var out bundle.Set
		for _, opt := range []bundle.Option{bundle.AsCanary("ns1"), func(*bundle.Bundle) {}} {
			b, err := bundle.FromFiles("own", map[string]string{"x.rego": text}, opt)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, b)
			text += "# everywhere else\n"
		}
		return out
	}
	swap := func(n int) {
		s, err := e.CompileBundles(t.Context(), set(n))
		if err != nil {
			t.Fatal(err)
		}
		for _, ns := range []string{"ns0", "ns1"} {
			active.Store(s.RevisionFor(decision.Subject{Namespace: ns}), true)
		}
		if err := e.Swap(s); err != nil {
			t.Fatal(err)
		}
	}
	load(func() { swap(0) }) // what is kept for good is there now
	goroutines, empty := runtime.NumGoroutine(), heap.CountLiveBytes()
	one := sizeOf(t, e, set(-1))
	swaps := proptest.Often(100)
	start, before := time.Now(), made.Load()
	slowest.Store(0)
	load(func() {
		for n := 1; n <= swaps; n++ {
			swap(n)
		}
	})
	t.Logf("%d swaps in %s, meanwhile %d decisions, none failed, the slowest took %s", swaps,
		time.Since(start).Round(time.Millisecond), made.Load()-before, time.Duration(slowest.Load()).Round(time.Microsecond))
	now := heap.CountLiveBytes()
	t.Logf("goroutines were %d and are %d; the heap was %.1f MiB and is %.1f MiB; one snapshot is %.1f MiB", goroutines, runtime.NumGoroutine(), mib(empty), mib(now), mib(one))
	if n := runtime.NumGoroutine(); n > goroutines+deciders {
		t.Errorf("goroutines were %d and are %d", goroutines, n)
	}
	if now > empty+10*one {
		t.Errorf("the heap was %.1f MiB and is %.1f MiB, with %.1f MiB for a snapshot", mib(empty), mib(now), mib(one))
	}
}

// sizeOf is what a snapshot takes.
func sizeOf(t *testing.T, e *engine.Engine, set bundle.Set) int {
	t.Helper()
	before := heap.CountLiveBytes()
	s, err := e.CompileBundles(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	after := heap.CountLiveBytes()
	runtime.KeepAlive(s)
	return max(after-before, 1<<18)
}

func mib(bytes int) float64 { return float64(bytes) / (1 << 20) }
