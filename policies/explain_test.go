// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/policies"
)

// TestRecordsNameTheRulesThatDecided keeps explanations free of rules that were
// evaluated and had nothing to say. The package itself stands for rules that
// have no name.
func TestRecordsNameTheRulesThatDecided(t *testing.T) {
	e, err := engine.New(policies.Builtin, engine.WithPatience(20)) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	rolling := decision.Strategy{Type: "RollingUpdate"}
	plan := func(s decision.Strategy) decision.Record {
		_, record := engine.Decide(t.Context(), e, decision.RolloutPlan(), web, decision.PlanInput{Strategy: s, Update: 3})
		return record
	}
	rank := func(s decision.Strategy) decision.Record {
		_, record := engine.Decide(t.Context(), e, decision.RolloutRank(), web, decision.RankInput{Strategy: s, Pods: []decision.PodFacts{{Name: "a"}}})
		return record
	}
	scale := func(in decision.ScaleInput) decision.Record {
		_, record := engine.Decide(t.Context(), e, decision.RolloutScale(), web, in)
		return record
	}
	change := func(in decision.ChangeInput) decision.Record {
		_, record := engine.Decide(t.Context(), e, decision.RolloutChange(), web, in)
		return record
	}
	budget := func(in decision.BudgetInput) decision.Record {
		_, record := engine.Decide(t.Context(), e, decision.ProtectionBudget(), web, in)
		return record
	}
	deletion := func(in decision.DeletionInput) decision.Record {
		in.Request.Operation, in.Gates.Deletion = decision.Delete, true
		_, record := engine.Decide(t.Context(), e, decision.ProtectionDeletion(), web, in)
		return record
	}
	pod := decision.Object{Kind: "Pod", Namespace: "shop", Name: "web-1"}
	ready := decision.PodState{Ready: true, Consistent: true}
	deletes := decision.Request{Operation: decision.Delete}
	cloneSet := &decision.ProtectedKind{Group: "apps.kruise.io", Resource: "clonesets", Cascading: decision.CascadeReplicas}
	labels := map[string]string{"policy.kruise.io/delete-protection": decision.ProtectAlways}
	_, guards := engine.Decide(t.Context(), e, decision.ProtectionGuards(), decision.Subject{}, decision.GuardsInput{})
	tests := []struct {
		name string
		got  decision.Record
		want []string
	}{
		{"a plan that goes", plan(rolling), []string{"rollout.plan"}},
		{"a plan that is paused", plan(decision.Strategy{Type: "RollingUpdate", Paused: true}), []string{"rollout.plan", "rollout.plan.paused"}},
		{"a default order", rank(rolling), []string{"rollout.rank", "rollout.rank.default", "rollout.rank.lead"}},
		{"an order by weight", rank(decision.Strategy{Weights: []int{1}}), []string{"rollout.rank", "rollout.rank.lead", "rollout.rank.weight"}},
		{"a scale-up that is limited", scale(decision.ScaleInput{Up: 3}), []string{"rollout.scale.create", "rollout.scale.up-limited"}},
		{"a scale-in", scale(decision.ScaleInput{Down: 3}), []string{"rollout.scale.delete", "rollout.scale.victims"}},
		{"nothing to scale", scale(decision.ScaleInput{}), []string{"rollout.scale.delete"}},
		{"a change of nothing", change(decision.ChangeInput{Known: true, Policy: "InPlaceOnly"}), []string{"rollout.change.nothing"}},
		{"a change that is rejected", change(decision.ChangeInput{Policy: "InPlaceOnly"}), []string{"rollout.change.in-place-only", "rollout.change.unknown-revision"}},
		{"a pod without a budget", budget(decision.BudgetInput{Request: deletes, Pod: ready}), []string{"protection.budget.allow", "protection.budget.no-budget"}},
		{"a pod within its budget", budget(decision.BudgetInput{Request: deletes, Object: pod, Pod: ready, Budget: &decision.Budget{Desired: 1, Allowed: 1}}), []string{"protection.budget.allow", "protection.budget.taken"}},
		{"a pod that its budget keeps", budget(decision.BudgetInput{Request: deletes, Object: pod, Pod: ready, Budget: &decision.Budget{Desired: 1}}), []string{"protection.budget.deny", "protection.budget.exceeded"}},
		{"a workload that goes", deletion(decision.DeletionInput{Kind: cloneSet}), []string{"protection.deletion.allow", "protection.deletion.not-labelled"}},
		{"a workload that stays", deletion(decision.DeletionInput{Kind: cloneSet, Object: decision.Object{Labels: labels}}), []string{"protection.deletion.always", "protection.deletion.deny"}},
		{"what is asked about", guards, []string{"protection.guards"}},
		{"a change by a policy nobody knows", change(decision.ChangeInput{Known: true}), []string{"rollout.change.unknown-policy"}},
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
