// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
)

func sorted(list []string) string {
	list = slices.Clone(list)
	slices.Sort(list)
	return strings.Join(list, " ")
}

// crossProduct takes longer than a test can wait.
const crossProduct = `package extend.test.slow
hold contains {"reason": "Slow", "message": "m"} if {
	r := numbers.range(1, 2000)
	some a in r; some b in r; some c in r; some d in r
	a + b + c + d == 0
}
`

func TestHostilePoliciesCostTheDeadlineAtMost(t *testing.T) {
	for name, source := range map[string]string{
		"a cross product": crossProduct,
		"a comprehension without an end": `package extend.test.x
hold contains {"reason": "X", "message": "m"} if count([1 | some a in numbers.range(1, 100000); some b in numbers.range(1, 100000)]) == 0`,
		"a range that is longer than memory": `package extend.test.x
hold contains {"reason": "X", "message": "m"} if count(numbers.range(1, 100000000000)) == 0`,
		"text that doubles": `package extend.test.x
s0 := "0123456789"
s1 := concat("", [s0,s0,s0,s0,s0,s0,s0,s0,s0,s0,s0,s0,s0,s0,s0,s0])
s2 := concat("", [s1,s1,s1,s1,s1,s1,s1,s1,s1,s1,s1,s1,s1,s1,s1,s1])
s3 := concat("", [s2,s2,s2,s2,s2,s2,s2,s2,s2,s2,s2,s2,s2,s2,s2,s2])
s4 := concat("", [s3,s3,s3,s3,s3,s3,s3,s3,s3,s3,s3,s3,s3,s3,s3,s3])
s5 := concat("", [s4,s4,s4,s4,s4,s4,s4,s4,s4,s4,s4,s4,s4,s4,s4,s4])
s6 := concat("", [s5,s5,s5,s5,s5,s5,s5,s5,s5,s5,s5,s5,s5,s5,s5,s5])
s7 := concat("", [s6,s6,s6,s6,s6,s6,s6,s6,s6,s6,s6,s6,s6,s6,s6,s6])
hold contains {"reason": "X", "message": s7}`,
		"functions that call each other a billion times": `package extend.test.x
f(x) := x
g(x) := [f(i + x) | some i in numbers.range(1, 1000)]
h(x) := [g(i + x) | some i in numbers.range(1, 1000)]
hold contains {"reason": "X", "message": "m"} if count([h(i) | some i in numbers.range(1, 1000)]) == 0`,
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, builtin, engine.WithGrace(200*time.Millisecond), engine.WithMemory(64<<20))
			if err := e.ActivateBundles(context.Background(), bundle.Set{platform(t, "hostile", source)}); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			got, rec := engine.Decide(context.Background(), e, hasty(), subject(), facts{N: 1})
			// Left alone these take from minutes to indefinitely; what is allowed
			// beyond the budget is for machines that are busy with other things.
			if took := time.Since(start); took > hasty().Budget+20*time.Second {
				t.Errorf("it took %s", took)
			}
			if rec.Outcome != decision.TimedOut && rec.Outcome != decision.Failed || got.Total != -1 {
				t.Errorf("got %+v, %s %s", got, rec.Outcome, rec.Error)
			}
		})
	}
}

// long is a text of 16^n times ten bytes, made while it is evaluated.
func long(n int) string {
	out := "t0 := sprintf(\"%10d\", [input.n])\n"
	for i := range n {
		out += fmt.Sprintf("t%d := concat(\"\", [%s])\n", i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("t%d, ", i), 16), ", "))
	}
	return out
}

func TestAnAnswerOfTooMuchTextIsNone(t *testing.T) {
	for name, tc := range map[string]struct{ source, want string }{
		"a message of 10 MB": {
			long(5) + `hold contains {"reason": "X", "message": t5}`,
			"reading the answer of test/go: holds[0].message has 10485760 bytes, and a text of an answer may have 8192",
		},
		"a reason that is a little too long": {
			`hold contains {"reason": sprintf("%8193d", [input.n]), "message": "m"}`,
			"holds[0].reason has 8193 bytes, and a text of an answer may have 8192",
		},
		"many messages of which none is too long": {
			long(2) + `hold contains {"reason": "X", "message": sprintf("%d %s", [i, t2])} if some i in numbers.range(1, 110)`,
			"bytes of text, the limit is 262144",
		},
		"the name of a field": {
			long(5) + `hold contains {"reason": "X", "message": "m", "where": {t5: "x"}}`,
			"holds[0].where.the name of a field has 10485760 bytes",
		},
		"a field that is not there": {
			long(5) + `hold contains {"reason": "X", "message": "m", t5: "x"}`,
			"holds[0].the name of a field has 10485760 bytes",
		},
		"an error that says what a built-in was asked": {
			long(5) + `hold contains {"reason": "X", "message": "m"} if to_number(concat("", ["x", t5])) == 1`,
			"eval_builtin_error: to_number",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var kept decision.Record
			e := newEngine(t, builtin, engine.WithSink(sinkFunc(func(r decision.Record) { kept = r })))
			set := bundle.Set{platform(t, "wordy", "package extend.test.x\n"+tc.source)}
			if err := e.ActivateBundles(context.Background(), set); err != nil {
				t.Fatal(err)
			}
			p := point() // it is bounded by something else than the budget
			got, rec := engine.Decide(context.Background(), e, p, subject(), facts{N: 1})
			if rec.Outcome != decision.Failed || got.Total != -1 || !strings.Contains(rec.Error, tc.want) {
				t.Errorf("got %.300s, %s %.300s; want %s", fmt.Sprint(got), rec.Outcome, rec.Error, tc.want)
			}
			// Of what it computed nothing is kept, but for the beginning of an error.
			if size := len(fmt.Sprintf("%+v", kept)); size > decision.MaxText+2000 || kept.Error != rec.Error || len(rec.Error) > decision.MaxText {
				t.Errorf("the record has %d bytes", size)
			}
			if _, aside := engine.DecideOn(context.Background(), e, e.ActiveSnapshot(), p.EraseTypes(), subject(), facts{N: 1}); aside.Outcome != rec.Outcome || aside.Error != rec.Error {
				t.Errorf("made again it is %s %.300s", aside.Outcome, aside.Error)
			}
		})
	}
}

func TestAPointMayHaveMoreText(t *testing.T) {
	e := newEngine(t, builtin)
	set := bundle.Set{platform(t, "wordy", "package extend.test.x\n"+long(2)+`hold contains {"reason": "X", "message": sprintf("%d %s", [i, t2])} if some i in numbers.range(1, 110)`)}
	if err := e.ActivateBundles(context.Background(), set); err != nil {
		t.Fatal(err)
	}
	p := point()
	p.MaxBytes = 1 << 20
	if got, rec := engine.Decide(context.Background(), e, p, subject(), facts{N: 1}); rec.Outcome != decision.Decided || len(got.Holds) != 110 {
		t.Errorf("got %d holds, %s %s", len(got.Holds), rec.Outcome, rec.Error)
	}
}

func TestPatienceIsSoManyTimesTheBudget(t *testing.T) {
	e := newEngine(t, builtin, engine.WithPatience(3))
	if err := e.ActivateBundles(context.Background(), bundle.Set{platform(t, "slow", crossProduct)}); err != nil {
		t.Fatal(err)
	}
	p := point()
	p.Budget = 7 * time.Millisecond
	if _, rec := engine.Decide(context.Background(), e, p, subject(), facts{N: 1}); rec.Outcome != decision.TimedOut || !strings.Contains(rec.Error, "21ms") {
		t.Errorf("got %s %s", rec.Outcome, rec.Error)
	}
}

// stuck is a hold that makes endless evaluations with it go on until the channel is closed:
// no rule does that any more that is known, and who calls the engine must not depend on it.
const stuck = `package extend.test.stuck
hold contains {"reason": "Stuck", "message": "m"} if input.n > 0
`

func endless(budget time.Duration, began func(), end <-chan struct{}) decision.Point[facts, answer] {
	p := point()
	p.Budget = budget
	p.Check = func(_ facts, out answer) error {
		if len(out.Holds) > 0 && out.Holds[0].Reason == "Stuck" {
			began()
			<-end
		}
		return nil
	}
	return p
}

func TestAnEvaluationThatCannotBeStoppedIsCountedAndAnswered(t *testing.T) {
	w := newWatcher()
	e := newEngine(t, builtin, engine.WithObserver(w), engine.WithGrace(20*time.Millisecond), engine.WithParallel(2))
	if err := e.ActivateBundles(context.Background(), bundle.Set{platform(t, "stuck", stuck)}); err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	got, rec := engine.Decide(context.Background(), e, endless(time.Second, func() {}, end), subject(), facts{N: 1})
	if rec.Outcome != decision.TimedOut || got.Total != -1 {
		t.Errorf("got %+v, %+v", got, rec)
	}
	stuck := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.stuck
	}
	// It is counted, and counted off when it ends after all; had the answer waited
	// for its end, it would be neither.
	for still := 1; still >= 0; still-- {
		select {
		case <-w.changed:
		case <-time.After(2 * time.Minute):
			t.Fatal("no event says that it is stuck, or that it ended")
		}
		if stuck() != still {
			t.Errorf("%d are stuck, want %d", stuck(), still)
		}
		if still > 0 {
			close(end)
		}
	}
	// Others decide as before.
	if err := e.ActivateBundles(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	if _, rec := engine.Decide(context.Background(), e, point(), subject(), facts{N: 1}); rec.Outcome != decision.Decided {
		t.Errorf("got %+v", rec)
	}
}

func TestATenantIsRolledBackAlone(t *testing.T) {
	w := newWatcher()
	e := newEngine(t, builtin, engine.WithObserver(w), engine.WithGrace(50*time.Millisecond))
	set := bundle.Set{platform(t, "good", freeze), tenant(t, "shop", strings.Replace(crossProduct, "slow", "mine", 1)), tenant(t, "bank", strings.Replace(freeze, "extend.test.freeze", "extend.test.own", 1))}
	if err := e.ActivateBundles(context.Background(), set); err != nil {
		t.Fatal(err)
	}
	until(t, e, w, func() {
		engine.Decide(context.Background(), e, hasty(), subject(), facts{N: 1})
		if _, rec := engine.Decide(context.Background(), e, point(), decision.Subject{Namespace: "bank"}, facts{N: 1}); rec.Outcome != decision.Decided {
			t.Errorf("another tenant is held up: %+v", rec)
		}
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rollbacks) != 1 || w.rollbacks[0].Namespace != "shop" || len(w.rollbacks[0].Bundles) != 1 {
		t.Errorf("rollbacks %+v", w.rollbacks)
	}
	if got, want := e.ActiveSnapshot().UserBundles().WithoutWithheld().IDs(), (bundle.Set{set[0], set[2]}).IDs(); !slices.Equal(got, want) {
		t.Errorf("active are %v, want %v", got, want)
	}
	if got, rec := engine.Decide(context.Background(), e, point(), subject(), facts{N: 1}); rec.Outcome != decision.Failed || got.Total != -1 {
		t.Errorf("what it takes part in is not the strictest answer: %+v, %+v", got, rec)
	}
	other := decision.Subject{Namespace: "third"}
	if got, _ := engine.Decide(context.Background(), e, point(), other, facts{N: 1, Extra: "friday"}); len(got.Holds) != 1 {
		t.Errorf("the platform's hold is gone elsewhere: %+v", got)
	}
	var refused engine.RolledBackError
	if err := e.ActivateBundles(context.Background(), set); !errors.As(err, &refused) || !slices.Equal(refused.Bundles, set[1:2].IDs()) {
		t.Errorf("it came back: %v", err)
	}
}

func TestALateBuiltinPolicyBlamesNobody(t *testing.T) {
	slow := strings.Replace(crossProduct, "extend.test.slow", "test", 1) + "\ngo := {\"go\": count(hold) == 0, \"total\": 1, \"holds\": []}"
	e := newEngine(t, slow, engine.WithGrace(20*time.Millisecond))
	if err := e.ActivateBundles(context.Background(), bundle.Set{platform(t, "good", freeze)}); err != nil {
		t.Fatal(err)
	}
	revision := e.ActiveSnapshot().Revision()
	p := point()
	p.Budget = 10 * time.Millisecond
	for range 10 {
		engine.Decide(context.Background(), e, p, subject(), facts{})
		time.Sleep(20 * time.Millisecond)
	}
	if got := e.ActiveSnapshot().Revision(); got != revision {
		t.Errorf("rolled back to %s", got)
	}
}

func TestACallerThatLeavesGetsTheFallback(t *testing.T) {
	e := newEngine(t, builtin)
	if err := e.ActivateBundles(context.Background(), bundle.Set{platform(t, "slow", crossProduct)}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	got, rec := engine.Decide(ctx, e, point(), subject(), facts{})
	if rec.Outcome != decision.TimedOut || got.Total != -1 || !strings.Contains(rec.Error, "the caller did not wait") {
		t.Errorf("got %+v, %+v", got, rec)
	}
}

func TestSwappingWhileDeciding(t *testing.T) {
	e := newEngine(t, builtin)
	sets := []bundle.Set{nil, {platform(t, "freeze", freeze)}, {platform(t, "o", "package override.test\ngo := {\"go\": true, \"total\": 7, \"holds\": []}")}}
	want := map[string]int{}
	for _, s := range sets {
		snapshot, err := e.CompileBundles(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		want[snapshot.Revision()] = 1
	}
	want[mustCompile(t, e, sets[2]).Revision()] = 7
	stop := make(chan struct{})
	var swapping, deciding sync.WaitGroup
	swapping.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := e.ActivateBundles(context.Background(), sets[i%len(sets)]); err != nil {
				t.Error(err)
			}
		}
	})
	for range 4 {
		deciding.Go(func() {
			for range 300 {
				got, rec := engine.Decide(context.Background(), e, point(), subject(), facts{N: 1})
				if rec.Outcome == decision.Decided && got.Total != want[rec.Revision] {
					t.Errorf("revision %s said %d", rec.Revision, got.Total)
				}
			}
		})
	}
	deciding.Wait()
	close(stop)
	swapping.Wait()
}

func mustCompile(t *testing.T, e *engine.Engine, s bundle.Set) *engine.Snapshot {
	t.Helper()
	out, err := e.CompileBundles(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
