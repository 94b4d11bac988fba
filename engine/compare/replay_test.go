// SPDX-License-Identifier: Apache-2.0

package compare_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/enginetest"
	"github.com/regatta-sh/regatta/engine/record"
)

// A rule that takes part in a point is not evaluated while a fact is missing. That says nothing about the rule.
func TestADecisionWithAMissingFactIsNotCompared(t *testing.T) {
	b := record.NewBuffer()
	e := enginetest.New(t, b)
	in := enginetest.PlanFacts(1)
	in.Workload.MissingFacts = []decision.MissingFact{{Fact: "workload.namespaceLabels", Reason: "NamespaceUnknown", Message: "Namespace shop is not known."}}
	if _, rec := engine.Decide(t.Context(), e, rollout.PlanPoint(), enginetest.WebSubject(), in); rec.Outcome != decision.Decided {
		t.Fatalf("without rules of users the outcome is %s: %s", rec.Outcome, rec.Error)
	}
	s, err := e.CompileBundles(t.Context(), enginetest.NewBundleSet(t, enginetest.Friday))
	if err != nil {
		t.Fatal(err)
	}
	r := b.FindRecords(record.Query{})[0]
	if now, err := compare.ReplayOnce(t.Context(), e, s, r); err != nil || now.Outcome != decision.Failed {
		t.Fatalf("with a rule the outcome is %s, %v", now.Outcome, err)
	}
	if d, err := compare.ReplayAndDiff(t.Context(), e, s, r, 1); err != nil || d != nil {
		t.Errorf("the difference is %+v, %v", d, err)
	}
}

func TestReplay(t *testing.T) {
	b := record.NewBuffer()
	e := enginetest.New(t, b)
	for _, n := range []int{1, 2} {
		engine.Decide(context.Background(), e, rollout.PlanPoint(), enginetest.WebSubject(), enginetest.PlanFacts(n))
	}
	// Records survive being written and read.
	var file bytes.Buffer
	if err := record.Write(&file, b.FindRecords(record.Query{})); err != nil {
		t.Fatal(err)
	}
	records, err := record.Read(&file)
	if err != nil || len(records) != 2 {
		t.Fatalf("read %v, %v", records, err)
	}
	for name, tc := range map[string]struct {
		set  bundle.Set
		want []string
		now  decision.Outcome
		kind compare.Kind
	}{
		"the same policies decide the same":     {},
		"a new hold is a difference":            {set: enginetest.NewBundleSet(t, enginetest.Friday), want: []string{"Holds"}, now: decision.Decided, kind: compare.Stricter},
		"an override that is wrong is one too":  {set: enginetest.NewBundleSet(t, "package override.rollout\nplan := 1"), want: []string{"Holds", "Limit", "MaxUnavailable"}, now: decision.Failed, kind: compare.Lost},
		"a bundle that says nothing is not one": {set: enginetest.NewBundleSet(t, "package extend.rollout.x\nhold contains {} if input.workload.name == \"other\"")},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := e.CompileBundles(context.Background(), tc.set)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				d, err := compare.ReplayAndDiff(context.Background(), e, s, r, 1)
				if err != nil {
					t.Fatal(err)
				}
				if d == nil {
					if tc.want != nil {
						t.Errorf("no difference, want one in %v", tc.want)
					}
					continue
				}
				if d.Kind != tc.kind {
					t.Errorf("it is %s, want %s", d.Kind, tc.kind)
				}
				if !slices.Equal(d.Fields, tc.want) || d.Now.Outcome != tc.now || d.Then.Revision == d.Now.Revision {
					t.Errorf("difference %+v, want one in %v", d, tc.want)
				}
			}
		})
	}
	if n, _ := b.Len(); n != 2 {
		t.Errorf("replaying was recorded: there are %d records", n)
	}
	if _, err := compare.ReplayAndDiff(context.Background(), e, e.ActiveSnapshot(), decision.Record{Point: "no/point"}, 1); err == nil {
		t.Error("a point that does not exist was replayed")
	}
}

// TestADecisionThatComesTooLateIsAskedForOnceMore has the only worker busy until
// the first answer is late.
func TestADecisionThatComesTooLateIsAskedForOnceMore(t *testing.T) {
	begun, let, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var asked atomic.Int64
	clock := func() time.Time {
		// The first one's beginning and end, and the second one's beginning.
		if asked.Add(1) == 3 {
			close(let)
			<-over
		}
		return time.Unix(0, 0).UTC()
	}
	e := enginetest.NewWithOptions(t, engine.WithParallel(1), engine.WithPatience(5), engine.WithClock(clock))
	asked.Store(-1) // the evaluation in the way begins
	go func() {
		defer close(over)
		p := rollout.PlanPoint()
		p.Budget = time.Hour
		p.Check = func(rollout.PlanInput, rollout.PlanOutput) error {
			close(begun)
			<-let
			return nil
		}
		engine.Decide(context.Background(), e, p, enginetest.WebSubject(), enginetest.PlanFacts(1))
	}()
	<-begun
	now, err := compare.ReplayWithRetries(t.Context(), e, e.ActiveSnapshot(), decision.Record{Point: rollout.PlanPoint().Name, Subject: enginetest.WebSubject(), Input: enginetest.PlanFacts(1)}, engine.Strikes)
	if err != nil || now.Outcome != decision.Decided {
		t.Errorf("got %s %s, %v", now.Outcome, now.Error, err)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := compare.ReplayWithRetries(ctx, e, e.ActiveSnapshot(), now, engine.Strikes); !errors.Is(err, gone) {
		t.Errorf("for an object that is gone: %v", err)
	}
}

func TestADecisionIsTriedAsOftenAsItMayBeLate(t *testing.T) {
	var asked atomic.Int64
	e := enginetest.NewWithOptions(t, engine.WithClock(func() time.Time { asked.Add(1); return time.Unix(0, 0).UTC() }))
	s := enginetest.CompileSnapshot(t, e, enginetest.Endless)
	once := int64(0)
	for _, tc := range []struct {
		name  string
		then  decision.Outcome
		tries int
		times int64
	}{
		{"one that may be late once", decision.Decided, 1, 1},
		{"one that may be late three times", decision.Decided, 3, 3},
		{"one that was late when it was recorded", decision.TimedOut, 3, 1},
	} {
		asked.Store(0)
		now, err := compare.ReplayWithRetries(t.Context(), e, s, decision.Record{Point: rollout.PlanPoint().Name, Subject: enginetest.WebSubject(), Input: enginetest.PlanFacts(1), Outcome: tc.then}, tc.tries)
		if once == 0 {
			once = asked.Load()
		}
		if err != nil || now.Outcome != decision.TimedOut || asked.Load() != once*tc.times {
			t.Errorf("%s: %s after %d looks at the clock, %d for each, %v", tc.name, now.Outcome, asked.Load(), once, err)
		}
	}
}
