// SPDX-License-Identifier: Apache-2.0

package compare_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/enginetest"
)

// planned is a decision of rollout/plan with some holds.
func planned(reasons ...string) decision.Record {
	r := decision.Record{Point: "rollout/plan", Outcome: decision.Decided, Input: rollout.PlanInput{Update: 9, MaxUnavailable: 9}, Duration: time.Millisecond}
	out := rollout.PlanOutput{Limit: 5, MaxUnavailable: 1}
	for _, reason := range reasons {
		out.Holds = append(out.Holds, decision.Hold{Rule: "r", Reason: reason, Message: "m"})
	}
	r.Output = out
	return r
}

func limited(r decision.Record, limit int) decision.Record {
	out := r.Output.(rollout.PlanOutput)
	out.Limit = limit
	r.Output = out
	return r
}

func undecided(r decision.Record, how decision.Outcome) decision.Record {
	r.Outcome, r.Output, r.Error = how, rollout.PlanOutput{Holds: []decision.Hold{{Rule: "engine", Reason: "NoDecision"}}}, "why"
	return r
}

func TestDifferencesAreOfAKindAndAGroup(t *testing.T) {
	e := enginetest.New(t)
	many := planned()
	for i := range 5 {
		many.Output = rollout.PlanOutput{Holds: append(many.Output.(rollout.PlanOutput).Holds, decision.Hold{Rule: "r", Reason: fmt.Sprint("R", i)})}
	}
	for _, tc := range []struct {
		name      string
		then, now decision.Record
		want      string // kind: then -> now
	}{
		{"the same", planned("A"), planned("A"), ""},
		{"another revision, rules and duration are no difference", planned(), func() decision.Record {
			r := planned()
			r.Revision, r.Rules, r.Duration = "x", []string{"y"}, time.Hour
			return r
		}(), ""},
		{"held", planned(), planned("A"), "stricter: Go -> Hold (r A)"},
		{"let go", planned("A"), planned(), "looser: Hold (r A) -> Go"},
		{"held for one reason more", planned("A"), planned("A", "B"), "changed: Hold -> Hold (r B)"},
		{"another limit", planned(), limited(planned(), 4), "stricter: Go -> Go with other Limit"},
		{"reasons of many rules are cut short", planned(), many, "stricter: Go -> Hold (r R0, r R1, r R2, 2 more)"},
		{"no decision any more", planned(), undecided(planned(), decision.TimedOut), "error: Go -> Timeout"},
		{"no decision before", undecided(planned(), decision.Failed), planned(), "looser: Error -> Go"},
		{"never a decision, but another reason why", undecided(planned(), decision.Failed), undecided(planned(), decision.TimedOut), "changed: Error -> Timeout"},
		{"a word that is too long", planned(), planned(strings.Repeat("ä", 100)), "stricter: Go -> Hold (r " + strings.Repeat("ä", 59) + "...)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, err := compare.DiffRecords(e, tc.then, tc.now)
			if err != nil {
				t.Fatal(err)
			}
			c := compare.NewCounter()
			c.CountDecision(d, 0, 0)
			got := ""
			for _, g := range c.CurrentTally().Groups {
				got += fmt.Sprintf("%s: %s -> %s", g.Kind, g.Then, g.Now)
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	if _, err := compare.DiffRecords(e, decision.Record{Point: "no/point"}, planned()); err == nil {
		t.Error("a point that does not exist was compared")
	}
	if _, err := compare.DiffRecords(e, planned(), decision.Record{Output: 7}); err == nil {
		t.Error("answers of two types were compared")
	}
}

func TestTally(t *testing.T) {
	e := enginetest.New(t)
	c := compare.NewCounter(compare.WithGroups(3), compare.WithSamples(4), compare.WithPace(compare.Pace{Factor: 2, Floor: 2 * time.Millisecond}))
	var taken []int
	n := 0
	add := func(then, now decision.Record, times int) {
		for range times {
			n++
			then.ID = uint64(n)
			d, err := compare.DiffRecords(e, then, now)
			if err != nil {
				t.Fatal(err)
			}
			if c.CountDecision(d, then.Duration, now.Duration) {
				taken = append(taken, n)
			}
		}
	}
	slow := planned()
	slow.Duration = 4 * time.Millisecond
	add(planned(), planned(), 2)                // 1, 2
	add(planned(), slow, 1)                     // 3
	add(planned(), planned("A"), 9)             // 4 to 12
	add(planned("A"), planned(), 2)             // 13, 14
	add(planned(), undecided(slow, "Error"), 1) // 15
	add(planned(), planned("B"), 2)             // 16, 17: one group too many
	add(planned("A"), planned("B"), 1)          // 18

	got := c.CurrentTally()
	var samples []uint64
	for _, d := range got.Samples {
		samples = append(samples, d.Record)
		if d.Now.Output != nil {
			t.Error("a sample has its whole answer")
		}
	}
	got.Samples = nil
	want := compare.Tally{
		Compared: 18, Same: 3, Stricter: 11, Looser: 2, Changed: 1, Errors: 1, Slower: 2,
		Groups: []compare.Group{
			{Point: "rollout/plan", Kind: compare.Stricter, Then: "Go", Now: "Hold (r A)", Count: 9},
			{Point: "rollout/plan", Kind: compare.Looser, Then: "Hold (r A)", Now: "Go", Count: 2},
			{Point: "rollout/plan", Kind: compare.Lost, Then: "Go", Now: "Error", Count: 1},
			{Then: compare.Other, Now: compare.Other, Count: 3},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// The first of each group, then a second one of those that have one. Of the
	// first group the fourth and the eighth took the places of the first two.
	if got := fmt.Sprint(samples); got != "[15 13 7 14]" {
		t.Errorf("samples are of records %s", got)
	}
	if got := fmt.Sprint(taken); got != "[4 5 6 7 11 13 14 15]" {
		t.Errorf("taken were %s", got)
	}
}

func TestPace(t *testing.T) {
	for _, tc := range []struct {
		name      string
		then, now time.Duration
		want      bool
	}{
		{"much longer", time.Millisecond, time.Second, true},
		{"many times longer, but not long", time.Millisecond, 4 * time.Millisecond, false},
		{"long, but not many times longer", time.Second, 1900 * time.Millisecond, false},
		{"faster", time.Second, time.Millisecond, false},
		{"not known", 0, time.Hour, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := compare.DefaultPace().IsSlower(tc.then, tc.now); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
