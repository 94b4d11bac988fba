// SPDX-License-Identifier: Apache-2.0

package shadow_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/enginetest"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/shadow"
)

// observed is an observer that tells when so many results are there.
type observed struct {
	mu      sync.Mutex
	results []string
	more    chan struct{}
}

func newObserved() *observed { return &observed{more: make(chan struct{}, 10_000)} }

func (o *observed) ShadowCompared(name string, point decision.Name, result string) {
	o.mu.Lock()
	o.results = append(o.results, fmt.Sprint(name, " ", point, " ", result))
	o.mu.Unlock()
	o.more <- struct{}{}
}

func (o *observed) ShadowDropped(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.results = append(o.results, "end of "+name)
}

func (o *observed) wait(n int) {
	for range n {
		<-o.more
	}
}

func (o *observed) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.results)
}

// settled waits until a shadow has counted so many; what is observed is counted
// right after.
func settled(t *testing.T, s *shadow.Runner, name string, compared uint64) compare.Tally {
	t.Helper()
	for {
		tally, ok := s.ShadowTally(name)
		if !ok {
			t.Fatalf("there is no shadow %s", name)
		}
		if tally.Compared >= compared {
			return tally
		}
		time.Sleep(time.Millisecond)
	}
}

func TestShadowsCountAndChangeNothing(t *testing.T) {
	buffer := record.NewBuffer()
	e := enginetest.New(t, buffer)
	o := newObserved()
	samples := make(chan shadow.Sampled, 10)
	s := shadow.New(e, shadow.WithShare(1), shadow.WithObserver(o), shadow.WithSampled(func(x shadow.Sampled) { samples <- x }))
	defer s.Close()
	s.Watch("freeze", enginetest.CompileSnapshot(t, e, enginetest.Friday))
	s.Watch("nothing", e.ActiveSnapshot())
	s.Watch("bank", enginetest.CompileSnapshot(t, e, enginetest.Friday), shadow.WithSubjectFilter(func(s decision.Subject) bool { return s.Namespace == "bank" }))

	before := e.ActiveSnapshot()
	for range 3 {
		out, r := engine.Decide(t.Context(), e, rollout.PlanPoint(), enginetest.WebSubject(), enginetest.PlanFacts(1))
		if len(out.Holds) > 0 {
			t.Fatalf("a shadow was acted on: %v", out.Holds)
		}
		s.RecordDecision(r)
	}
	s.RecordDecision(decision.Record{Point: engine.RollbackPoint, Output: engine.Rollback{}})
	s.RecordDecision(decision.Record{Point: "no/point"})
	freeze, nothing := settled(t, s, "freeze", 3), settled(t, s, "nothing", 3)
	if freeze.Compared != 3 || freeze.Stricter != 3 || freeze.Same != 0 || freeze.Skipped != 0 || len(freeze.Samples) != 3 {
		t.Errorf("freeze: %+v", freeze)
	}
	if freeze.Revision == before.Revision() || freeze.Groups[0].Now != "Hold (freeze.friday Friday)" {
		t.Errorf("freeze: %+v", freeze)
	}
	if nothing.Same != 3 || nothing.Compared != 3 || len(nothing.Groups) != 0 {
		t.Errorf("nothing: %+v", nothing)
	}
	if bank, _ := s.ShadowTally("bank"); bank.Compared != 0 || bank.Skipped != 0 {
		t.Errorf("bank: %+v", bank)
	}
	if n, _ := buffer.Len(); n != 3 || e.ActiveSnapshot() != before {
		t.Errorf("there are %d records, want the 3 that were live", n)
	}
	if x := <-samples; x.Name != "freeze" || x.Difference.Now.Verdict.Word != rollout.Held || x.Now.Input == nil || x.Now.Revision != freeze.Revision {
		t.Errorf("sampled %+v", x)
	}
	o.wait(6)
	got := o.all()
	slices.Sort(got)
	if want := "freeze rollout/plan stricter,nothing rollout/plan same"; strings.Join(slices.Compact(slices.Clone(got)), ",") != want || len(got) != 6 {
		t.Errorf("observed %v", got)
	}
}

func TestShadowsGoOnOrBeginAnew(t *testing.T) {
	e := enginetest.New(t)
	o := newObserved()
	at := time.Unix(100, 0)
	s := shadow.New(e, shadow.WithObserver(o), shadow.WithClock(func() time.Time { return at }, func(context.Context, time.Duration) {}))
	defer s.Close()
	_, r := engine.Decide(t.Context(), e, rollout.PlanPoint(), enginetest.WebSubject(), enginetest.PlanFacts(1))
	s.Watch("a", enginetest.CompileSnapshot(t, e, enginetest.Friday))
	s.RecordDecision(r)
	first := settled(t, s, "a", 1)
	s.Watch("a", enginetest.CompileSnapshot(t, e, enginetest.Friday))
	if again, _ := s.ShadowTally("a"); again.Compared != 1 || again.Since != first.Since {
		t.Errorf("the same revision began anew: %+v", again)
	}
	s.Watch("a", enginetest.CompileSnapshot(t, e, strings.Replace(enginetest.Friday, "Friday", "Day", 1)))
	if fresh, _ := s.ShadowTally("a"); fresh.Compared != 0 || fresh.Revision == first.Revision {
		t.Errorf("another revision goes on: %+v", fresh)
	}
	s.StopWatching("a")
	s.StopWatching("a")
	if _, ok := s.ShadowTally("a"); ok {
		t.Error("it was stopped and is there")
	}
	s.RecordDecision(r)
	if got := strings.Join(o.all(), ","); got != "a rollout/plan stricter,end of a,end of a" {
		t.Errorf("observed %s", got)
	}
}

func TestShadowsYieldAndSkip(t *testing.T) {
	e := enginetest.New(t)
	o := newObserved()
	var mu sync.Mutex
	busy, waiting := true, make(chan struct{}, 1)
	var rests []time.Duration
	wait := func(_ context.Context, d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if d < time.Second { // it looks again soon
			select {
			case waiting <- struct{}{}:
			default:
			}
			return
		}
		rests = append(rests, d)
	}
	ticks := 0
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); ticks++; return time.Unix(int64(ticks), 0) }
	s := shadow.New(e, shadow.WithBacklog(2), shadow.WithShare(0.25), shadow.WithObserver(o), shadow.WithClock(clock, wait),
		shadow.WithBusy(func() bool { mu.Lock(); defer mu.Unlock(); return busy }))
	defer s.Close()
	s.Watch("a", enginetest.CompileSnapshot(t, e, enginetest.Friday))
	_, r := engine.Decide(t.Context(), e, rollout.PlanPoint(), enginetest.WebSubject(), enginetest.PlanFacts(1))
	s.RecordDecision(r)
	<-waiting // it has the first one, and waits
	for range 5 {
		s.RecordDecision(r)
	}
	if tally, _ := s.ShadowTally("a"); tally.Compared != 0 || tally.Skipped != 3 {
		t.Errorf("while live decisions are busy: %+v", tally)
	}
	mu.Lock()
	busy = false
	mu.Unlock()
	if tally := settled(t, s, "a", 3); tally.Stricter != 3 || tally.Skipped != 3 {
		t.Errorf("afterwards: %+v", tally)
	}
	s.Close()
	mu.Lock()
	defer mu.Unlock()
	// Each took two ticks of the clock, to decide and to compare: two seconds, which
	// are to be a quarter.
	if got := fmt.Sprint(rests); got != "[6s 6s 6s]" {
		t.Errorf("it rested %s", got)
	}
}

func TestAShadowThatIsTooSlowStopsItself(t *testing.T) {
	live := 0
	// Without patience, since it is to be too slow for the budget of the point; the
	// live decision has time.
	e := enginetest.NewWithOptions(t, engine.WithSink(sinkFunc(func(decision.Record) { live++ })))
	s := shadow.New(e, shadow.WithStrikes(2), shadow.WithShare(1))
	defer s.Close()
	s.Watch("slow", enginetest.CompileSnapshot(t, e, enginetest.Endless))
	s.Watch("good", enginetest.CompileSnapshot(t, e, enginetest.Friday))
	p := rollout.PlanPoint()
	p.Budget = time.Minute
	_, r := engine.Decide(t.Context(), e, p, enginetest.WebSubject(), enginetest.PlanFacts(1))
	for range 4 {
		s.RecordDecision(r)
	}
	settled(t, s, "good", 4)
	slow := settled(t, s, "slow", 2)
	if slow.Compared != 2 || slow.Errors != 2 || !strings.Contains(slow.Stopped, "2 decisions in a row did not end in time, the last one of rollout/plan") {
		t.Errorf("%+v", slow)
	}
	// The same revision does not come back, and the watchdog has heard nothing.
	s.Watch("slow", enginetest.CompileSnapshot(t, e, enginetest.Endless))
	if again, _ := s.ShadowTally("slow"); again.Stopped == "" {
		t.Error("it goes on")
	}
	if err := e.CheckRolledBack(enginetest.NewBundleSet(t, enginetest.Endless)); err != nil {
		t.Errorf("the engine was told: %v", err)
	}
	if live != 1 {
		t.Errorf("%d decisions are live, want 1", live)
	}
}

type sinkFunc func(decision.Record)

func (f sinkFunc) RecordDecision(r decision.Record) { f(r) }

// TestShadowsUnderLoad is for the race detector: everything at the same time,
// and each decision is counted once.
func TestShadowsUnderLoad(t *testing.T) {
	e := enginetest.New(t)
	o := newObserved()
	s := shadow.New(e, shadow.WithShare(1), shadow.WithBacklog(8), shadow.WithObserver(o))
	s.Watch("a", enginetest.CompileSnapshot(t, e, enginetest.Friday))
	_, r := engine.Decide(t.Context(), e, rollout.PlanPoint(), enginetest.WebSubject(), enginetest.PlanFacts(1))
	snapshot := e.ActiveSnapshot()
	const each, askers = 100, 4
	var wg sync.WaitGroup
	for range askers {
		wg.Go(func() {
			for i := range each {
				s.RecordDecision(r)
				if i%10 == 0 {
					s.Watch("b", snapshot)
					s.ShadowTally("a")
					s.StopWatching("b")
				}
			}
		})
	}
	wg.Wait()
	tally, _ := s.ShadowTally("a")
	for tally.Compared+tally.Skipped < each*askers {
		time.Sleep(time.Millisecond)
		tally, _ = s.ShadowTally("a")
	}
	s.Close()
	s.RecordDecision(r)
	if last, _ := s.ShadowTally("a"); last.Compared+last.Skipped != each*askers || last.Stricter != last.Compared {
		t.Errorf("%d were recorded: %+v", each*askers, last)
	}
	seen := 0
	for _, line := range o.all() {
		if strings.HasPrefix(line, "a ") {
			seen++
		}
	}
	if seen != each*askers {
		t.Errorf("%d were observed", seen)
	}
}

func TestShadowsGoOnWithWhatIsAboutTheSame(t *testing.T) {
	e := enginetest.New(t)
	o := newObserved()
	var hours atomic.Int64
	clock := func() time.Time { return time.Unix(0, 0).Add(time.Duration(hours.Load()) * time.Hour) }
	s := shadow.New(e, shadow.WithObserver(o), shadow.WithClock(clock, func(context.Context, time.Duration) {}))
	defer s.Close()
	base := e.ActiveSnapshot()
	_, r := engine.Decide(t.Context(), e, rollout.PlanPoint(), enginetest.WebSubject(), enginetest.PlanFacts(1))
	s.Watch("a", enginetest.CompileSnapshot(t, e, enginetest.Friday), shadow.WithTopic("freeze"), shadow.WithLiveSnapshot(base))
	s.RecordDecision(r)
	first := settled(t, s, "a", 1)
	hours.Add(1)
	day := enginetest.CompileSnapshot(t, e, strings.Replace(enginetest.Friday, "Friday", "Day", 1))
	s.Watch("a", day, shadow.WithTopic("freeze"), shadow.WithLiveSnapshot(base))
	s.RecordDecision(r)
	if on := settled(t, s, "a", 2); on.Since != first.Since || on.Revision != day.Revision() || on.Stricter != 2 {
		t.Errorf("it does not go on: %+v", on)
	}
	// What others decided than those that it is compared with says nothing about it.
	s.Watch("a", day, shadow.WithTopic("freeze"), shadow.WithLiveSnapshot(enginetest.CompileSnapshot(t, e, enginetest.Friday)))
	s.RecordDecision(r)
	for tally, _ := s.ShadowTally("a"); tally.Skipped == 0; tally, _ = s.ShadowTally("a") {
		if tally.Compared > 2 {
			t.Fatalf("it is compared: %+v", tally)
		}
		time.Sleep(time.Millisecond)
	}
	s.Watch("a", day, shadow.WithTopic("another"), shadow.WithLiveSnapshot(base))
	if fresh, _ := s.ShadowTally("a"); fresh.Compared != 0 || fresh.Skipped != 0 || fresh.Since != clock() {
		t.Errorf("about another it goes on: %+v", fresh)
	}
	if got := strings.Join(o.all(), ","); got != "a rollout/plan stricter,a rollout/plan stricter,a rollout/plan skipped,end of a" {
		t.Errorf("observed %s", got)
	}
}
