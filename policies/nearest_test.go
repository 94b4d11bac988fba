// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"slices"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/nearest"
)

// TestTheNearestRuleOfEachPointIsFound asks about facts of which most are missing,
// with all examples active.
func TestTheNearestRuleOfEachPointIsFound(t *testing.T) {
	e := withExamples(t)
	for _, test := range []struct {
		name  string
		point decision.UntypedPoint
		in    any
		want  string // a rule that the explanation lists
	}{
		{"a plan at the weekend", rollout.PlanPoint().EraseTypes(), weekend(), "change-freeze.closed"},
		{"a plan without facts", rollout.PlanPoint().EraseTypes(), rollout.PlanInput{}, "rollout.plan.unknown-strategy"},
		{"the rank of many pods", rollout.RankPoint().EraseTypes(), rollout.RankInput{Pods: make([]rollout.PodFacts, 5000)}, "canary-by-label.others"},
		{"a scale-up that is limited", rollout.ScalePoint().EraseTypes(), rollout.ScaleInput{Up: 3}, "rollout.scale.up-limited"},
		{"a pod without facts", protection.BudgetPoint().EraseTypes(), protection.BudgetInput{}, "protection.budget.not-ready"},
		{"an object without facts", protection.DeletionPoint().EraseTypes(), protection.DeletionInput{}, "protection.deletion.operation"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, r := engine.DecideOn(t.Context(), e, e.ActiveSnapshot(), test.point, web, test.in)
			n, err := nearest.FindConditions(t.Context(), e, r)
			if err != nil || n.Partial {
				t.Fatalf("partial %v: %v", n.Partial, err)
			}
			var got []string
			for _, near := range slices.Concat(n.Now, n.Almost) {
				got = append(got, near.Rule)
			}
			if !slices.Contains(got, test.want) {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

// TestNoHoldIsToldOfAPointThatReadsNone asks points that no hold of users takes part
// in, of facts that some of these are about.
func TestNoHoldIsToldOfAPointThatReadsNone(t *testing.T) {
	e := withExamples(t)
	for _, test := range []struct {
		name  string
		point decision.UntypedPoint
		in    any
	}{
		{"scaling at the weekend", rollout.ScalePoint().EraseTypes(), rollout.ScaleInput{Now: weekend().Now, Up: 3}},
		{"a change by an unknown policy", rollout.ChangePoint().EraseTypes(), rollout.ChangeInput{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, r := engine.DecideOn(t.Context(), e, e.ActiveSnapshot(), test.point, web, test.in)
			n, err := nearest.FindConditions(t.Context(), e, r)
			if err != nil || n.Partial {
				t.Fatalf("partial %v: %v", n.Partial, err)
			}
			for _, near := range slices.Concat(n.Now, n.Almost) {
				if near.Wish != "" {
					t.Errorf("%s of %s is told", near.Rule, near.Bundle)
				}
			}
		})
	}
}

// BenchmarkFindNearest is about an answer at the weekend, with all examples active.
func BenchmarkFindNearest(b *testing.B) {
	e := withExamples(b)
	_, r := engine.DecideOn(b.Context(), e, e.ActiveSnapshot(), rollout.PlanPoint().EraseTypes(), web, weekend())
	b.ReportAllocs()
	for b.Loop() {
		if n, err := nearest.FindConditions(b.Context(), e, r); err != nil || n.Partial {
			b.Fatalf("partial %v: %v", n.Partial, err)
		}
	}
}

// weekend is a rollout on a Saturday.
func weekend() rollout.PlanInput {
	return rollout.PlanInput{
		Now: time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC).UnixNano(), Update: 9,
		Groups: map[string]map[string]rollout.Group{"zone": {"a": {Total: 5}, "b": {Total: 5}}},
	}
}
