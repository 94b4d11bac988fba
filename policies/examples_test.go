// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/test/rules"
)

var web = decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web", UID: "u1"}

func TestEveryExampleIsComplete(t *testing.T) {
	for name, b := range exampleBundles(t) {
		for _, file := range []string{"README.md", "bundle.yaml"} {
			if _, err := fs.Stat(policies.Examples, path.Join("examples", name, file)); err != nil {
				t.Errorf("%s has no %s", name, file)
			}
		}
		for file, m := range b.Modules {
			if pkg := m.Package.Path.String(); !strings.HasPrefix(pkg, "data.extend.") && !strings.HasPrefix(pkg, "data.override.") {
				t.Errorf("%s of %s is in package %s, which extends nothing", file, name, pkg)
			}
		}
	}
}

// withExamples is an engine that has all examples active.
func withExamples(t testing.TB) *engine.Engine {
	t.Helper()
	var set bundle.Set
	for _, b := range exampleBundles(t) {
		set = append(set, b)
	}
	e := rules.Engine(t, "")
	if err := e.ActivateBundles(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestExamplesDecideTogether asks an engine that has all examples active, one
// day at a time.
func TestExamplesDecideTogether(t *testing.T) {
	e := withExamples(t)
	tests := []struct {
		name, now string
		change    func(*rollout.PlanInput)
		want      []string
	}{
		{"on a working day the first zone goes", "2026-03-10T12:00:00Z", func(*rollout.PlanInput) {}, []string{"OtherZoneFirst"}},
		{"at the weekend nothing goes", "2026-03-14T12:00:00Z", func(*rollout.PlanInput) {}, []string{"ChangeFreeze", "FreezeWindow", "OtherZoneFirst"}},
		{"canaries wait for approval", "2026-03-10T12:00:00Z", func(in *rollout.PlanInput) {
			in.Counts = rollout.Counts{Total: 10, Updated: 1, UpdatedAvail: 1}
		}, []string{"CanaryApproval", "OtherZoneFirst"}},
		{"a paused workload says so as well", "2026-03-10T12:00:00Z", func(in *rollout.PlanInput) { in.Strategy.Paused = true }, []string{"OtherZoneFirst", "RolloutPaused"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, test.now)
			if err != nil {
				t.Fatal(err)
			}
			in := rollout.PlanInput{
				Now: now.UnixNano(), Workload: rollout.Workload{Kind: web.Kind, Namespace: web.Namespace, Name: web.Name, Replicas: 10},
				Strategy: rollout.Strategy{Type: "RollingUpdate", Policy: "InPlaceIfPossible"}, Revisions: rollout.Revisions{Current: "web-1", Update: "web-2"},
				Counts: rollout.Counts{Total: 10}, Update: 9, MaxUnavailable: 2,
				Groups: map[string]map[string]rollout.Group{"zone": {"a": {Total: 5}, "b": {Total: 5}}},
			}
			test.change(&in)
			out, record := engine.Decide(t.Context(), e, rollout.PlanPoint(), web, in)
			if record.Outcome != decision.Decided {
				t.Fatalf("the outcome is %s: %s", record.Outcome, record.Error)
			}
			var got []string
			for _, hold := range out.Holds {
				got = append(got, hold.Reason)
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("holds: want (-), got (+):\n%s", diff)
			}
		})
	}
	t.Run("gold is ranked last and, by rows, waits", func(t *testing.T) {
		pods := []rollout.PodFacts{{Name: "web-a", Labels: map[string]string{"tier": "gold"}}, {Name: "web-b"}}
		ranked, record := engine.Decide(t.Context(), e, rollout.RankPoint(), web, rollout.RankInput{Pods: pods})
		if diff := cmp.Diff([][]float64{{0, 0, 0, 1, 0}, {0, 0, 0, 0, 0}}, ranked.Lead); diff != "" {
			t.Errorf("lead is %s: want (-), got (+):\n%s", record.Error, diff)
		}
		rows, record := engine.Decide(t.Context(), e, rollout.RowsPoint(), web, rollout.RowsInput{Plan: rollout.PlanInput{Update: 2}, Rows: pods})
		if diff := cmp.Diff([]string{"web-b"}, rows.Order); diff != "" {
			t.Errorf("order is %s: want (-), got (+):\n%s", record.Error, diff)
		}
	})
}

// TestExamplesProtectTogether asks the same engine about what goes and what stays.
func TestExamplesProtectTogether(t *testing.T) {
	e := withExamples(t)
	tests := []struct {
		name   string
		change func(*protection.BudgetInput)
		want   []string
	}{
		{"a gold pod stays on Friday", func(*protection.BudgetInput) {}, []string{"GoldStaysToday"}},
		{"other pods go", func(in *protection.BudgetInput) { in.Object.Labels = nil }, []string{"NoBudget"}},
		{"too many at a time stay for that as well", func(in *protection.BudgetInput) { in.Recent.Deletes = 20 }, []string{"TooManyDeletes", "GoldStaysToday"}},
		{"the user on call breaks the glass", func(in *protection.BudgetInput) {
			in.Request.User.Groups = []string{"shop:on-call"}
			in.Object.Annotations = map[string]string{"policy.kruise.io/break-glass": "INC-7"}
		}, []string{"BreakGlass", "GoldStaysToday"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := protection.BudgetInput{
				Now:     time.Date(2026, 3, 13, 12, 0, 0, 0, time.UTC).UnixNano(),
				Request: protection.Request{Operation: protection.Delete, User: protection.User{Name: "ann"}},
				Object: protection.Object{Resource: "pods", Kind: "Pod", Namespace: "shop", Name: "web-1",
					Labels: map[string]string{"shop.example/tier": "gold"}},
				Pod: protection.PodState{Ready: true, Consistent: true},
			}
			test.change(&in)
			out, record := engine.Decide(t.Context(), e, protection.BudgetPoint(), web, in)
			if record.Outcome != decision.Decided {
				t.Fatalf("the outcome is %s: %s", record.Outcome, record.Error)
			}
			var got []string
			for _, reason := range out.Reasons {
				got = append(got, reason.Reason)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("reasons: want (-), got (+):\n%s", diff)
			}
		})
	}
}

func exampleBundles(t testing.TB) map[string]*bundle.Bundle {
	t.Helper()
	folders, err := fs.ReadDir(policies.Examples, "examples")
	if err != nil {
		t.Fatal(err)
	}
	bundles := map[string]*bundle.Bundle{}
	for _, folder := range folders {
		files, err := fs.Sub(policies.Examples, path.Join("examples", folder.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if bundles[folder.Name()], err = bundle.FromFS(folder.Name(), files); err != nil {
			t.Fatal(err)
		}
	}
	return bundles
}
