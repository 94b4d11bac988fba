// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/policies"
)

// A rule may hold by a fact that is missing, so no rule of users is evaluated then: the strict fallback answers. Where
// the built-in policies decide alone, the fact changes nothing.
func TestDecideAnswersStrictlyWhileAFactIsMissing(t *testing.T) {
	const holdsGold = "package extend.rollout.gold\n\nhold contains {\"rule\": \"gold\", \"reason\": \"Gold\", \"message\": \"m\"} if input.workload.namespaceLabels.tier == \"gold\"\n"
	missing := []decision.MissingFact{{Fact: "workload.namespaceLabels", Reason: "NamespaceUnknown", Message: "Namespace shop does not exist."}}
	for _, tc := range []struct {
		name   string
		rules  map[string]string // of the platform, by file
		tenant string            // rules of namespace shop
		labels map[string]string
		facts  []decision.MissingFact
		// want is the outcome, and limit the limit of the plan.
		want  decision.Outcome
		limit int
	}{
		{"the built-in policies alone decide without the fact", nil, "", nil, missing, decision.Decided, 3},
		{"a rule that reads the fact decides by it", map[string]string{"a.rego": holdsGold}, "", map[string]string{"tier": "gold"}, nil, decision.Decided, 0},
		{"a rule that reads the fact decides by its absence", map[string]string{"a.rego": holdsGold}, "", nil, nil, decision.Decided, 3},
		{"a rule does not decide while the fact is missing", map[string]string{"a.rego": holdsGold}, "", nil, missing, decision.Failed, 0},
		{"a rule of a team does not decide while the fact is missing", nil, holdsGold, nil, missing, decision.Failed, 0},
		{"a bundle that answers the point does not decide while the fact is missing", map[string]string{
			"a.rego": "package override.rollout\n\nplan := {\"limit\": 9, \"maxUnavailable\": 9, \"holds\": [], \"scatter\": []}\n",
		}, "", nil, missing, decision.Failed, 0},
		{"rules about other points do not matter", map[string]string{"a.rego": "package extend.protection.x\n\ndeny contains {\"reason\": \"R\", \"message\": \"m\"} if input.object.name == \"x\"\n"}, "", nil, missing, decision.Decided, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, err := engine.New(policies.Builtin, engine.WithPatience(20))
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			var set bundle.Set
			if tc.rules != nil {
				b, err := bundle.FromFiles("platform", tc.rules)
				if err != nil {
					t.Fatal(err)
				}
				set = append(set, b)
			}
			if tc.tenant != "" {
				b, err := bundle.FromFiles("team", map[string]string{"a.rego": tc.tenant})
				if err != nil {
					t.Fatal(err)
				}
				b.Kind, b.Namespace = bundle.Tenant, "shop"
				set = append(set, b)
			}
			if err := e.ActivateBundles(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			in := rollout.PlanInput{
				Update: 3, MaxUnavailable: 3, Strategy: rollout.Strategy{Type: "RollingUpdate"},
				Workload: rollout.Workload{Kind: "CloneSet", Namespace: "shop", Name: "web", NamespaceLabels: tc.labels, MissingFacts: tc.facts},
			}
			out, rec := engine.Decide(t.Context(), e, rollout.PlanPoint(), decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}, in)
			limit := out.Limit
			for _, h := range out.Holds {
				if h.IsWholeWorkload() {
					limit = 0
				}
			}
			if rec.Outcome != tc.want || limit != tc.limit {
				t.Errorf("the outcome is %s (%s) and the limit %d, want %s and %d", rec.Outcome, rec.Error, limit, tc.want, tc.limit)
			}
			if rec.Outcome == decision.Failed && !strings.Contains(rec.Error, "workload.namespaceLabels is missing: Namespace shop does not exist.") {
				t.Errorf("the record does not name the fact: %s", rec.Error)
			}
		})
	}
}
