// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/test/rules"
)

// TestRecordsNameTheRulesThatDecided keeps explanations free of rules that were
// evaluated and had nothing to say. The package itself represents rules that
// have no name.
func TestRecordsNameTheRulesThatDecided(t *testing.T) {
	e := rules.Engine(t, "")
	rolling := rollout.Strategy{Type: "RollingUpdate"}
	plan := func(s rollout.Strategy) decision.Record {
		_, record := engine.Decide(t.Context(), e, rollout.PlanPoint(), web, rollout.PlanInput{Strategy: s, Update: 3})
		return record
	}
	rank := func(s rollout.Strategy) decision.Record {
		_, record := engine.Decide(t.Context(), e, rollout.RankPoint(), web, rollout.RankInput{Strategy: s, Pods: []rollout.PodFacts{{Name: "a"}}})
		return record
	}
	scale := func(in rollout.ScaleInput) decision.Record {
		_, record := engine.Decide(t.Context(), e, rollout.ScalePoint(), web, in)
		return record
	}
	change := func(in rollout.ChangeInput) decision.Record {
		_, record := engine.Decide(t.Context(), e, rollout.ChangePoint(), web, in)
		return record
	}
	budget := func(in protection.BudgetInput) decision.Record {
		_, record := engine.Decide(t.Context(), e, protection.BudgetPoint(), web, in)
		return record
	}
	deletion := func(in protection.DeletionInput) decision.Record {
		in.Request.Operation, in.Gates.Deletion = protection.Delete, true
		_, record := engine.Decide(t.Context(), e, protection.DeletionPoint(), web, in)
		return record
	}
	pod := protection.Object{Kind: "Pod", Namespace: "shop", Name: "web-1"}
	ready := protection.PodState{Ready: true, Consistent: true}
	deletes := protection.Request{Operation: protection.Delete}
	cloneSet := &protection.ProtectedKind{Group: "apps.kruise.io", Resource: "clonesets", Cascading: protection.CascadeReplicas}
	labels := map[string]string{"policy.kruise.io/delete-protection": protection.ProtectAlways}
	_, guards := engine.Decide(t.Context(), e, protection.GuardsPoint(), decision.Subject{}, protection.GuardsInput{})
	tests := []struct {
		name string
		got  decision.Record
		want []string
	}{
		{"a plan that goes", plan(rolling), []string{"rollout.plan"}},
		{"a plan that is paused", plan(rollout.Strategy{Type: "RollingUpdate", Paused: true}), []string{"rollout.plan", "rollout.plan.paused"}},
		{"a default order", rank(rolling), []string{"rollout.rank", "rollout.rank.default", "rollout.rank.lead"}},
		{"an order by weight", rank(rollout.Strategy{Weights: []int{1}}), []string{"rollout.rank", "rollout.rank.lead", "rollout.rank.weight"}},
		{"a scale-up that is limited", scale(rollout.ScaleInput{Up: 3}), []string{"rollout.scale.create", "rollout.scale.up-limited"}},
		{"a scale-in", scale(rollout.ScaleInput{Down: 3}), []string{"rollout.scale.delete", "rollout.scale.planned", "rollout.scale.victims"}},
		{"nothing to scale", scale(rollout.ScaleInput{}), []string{"rollout.scale.delete", "rollout.scale.planned"}},
		{"a change of nothing", change(rollout.ChangeInput{Known: true, Policy: "InPlaceOnly"}), []string{"rollout.change.nothing"}},
		{"a change that is rejected", change(rollout.ChangeInput{Policy: "InPlaceOnly"}), []string{"rollout.change.in-place-only", "rollout.change.unknown-revision"}},
		{"a pod without a budget", budget(protection.BudgetInput{Request: deletes, Pod: ready}), []string{"protection.budget.allow", "protection.budget.no-budget"}},
		{"a pod within its budget", budget(protection.BudgetInput{Request: deletes, Object: pod, Pod: ready, Budget: &protection.Budget{Desired: 1, Allowed: 1}}), []string{"protection.budget.allow", "protection.budget.taken"}},
		{"a pod that its budget keeps", budget(protection.BudgetInput{Request: deletes, Object: pod, Pod: ready, Budget: &protection.Budget{Desired: 1}}), []string{"protection.budget.deny", "protection.budget.exceeded"}},
		{"a workload that goes", deletion(protection.DeletionInput{Kind: cloneSet}), []string{"protection.deletion.allow", "protection.deletion.not-labelled"}},
		{"a workload that stays", deletion(protection.DeletionInput{Kind: cloneSet, Object: protection.Object{Labels: labels}}), []string{"protection.deletion.always", "protection.deletion.deny"}},
		{"what is asked about", guards, []string{"protection.guards"}},
		{"a change by a policy nobody knows", change(rollout.ChangeInput{Known: true}), []string{"rollout.change.unknown-policy"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.got.Outcome != decision.Decided {
				t.Fatalf("the outcome is %s: %s", test.got.Outcome, test.got.Error)
			}
			got := slices.DeleteFunc(slices.Clone(test.got.Rules), func(id string) bool { return id == "rollout" || id == "protection" })
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("rules: want (-), got (+):\n%s", diff)
			}
		})
	}
}
