// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/cases"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/policies"
)

// strictest has, for each point, the strictest answer that a policy could give. Each
// point is listed: a new one is a missing entry.
func strictest(in any) map[decision.Name]any {
	hold := decision.Hold{Rule: "r", Reason: "R", Message: "m"}
	each := func(pods []decision.PodFacts) (out decision.RankOutput) {
		for _, p := range pods {
			h := hold
			h.Pod = p.Name
			out.Holds = append(out.Holds, h)
			out.Keys, out.Lead = append(out.Keys, []float64{0}), append(out.Lead, []float64{0})
		}
		return out
	}
	rank, _ := in.(decision.RankInput)
	return map[decision.Name]any{
		"rollout/change":      decision.ChangeOutput{Action: decision.Reject, Reason: "R", Message: "m"},
		"rollout/plan":        decision.PlanOutput{Holds: []decision.Hold{hold}},
		"rollout/rank":        each(rank.Pods),
		"rollout/rows":        decision.RowsOutput{},
		"rollout/scale":       decision.ScaleOutput{},
		"protection/budget":   decision.BudgetOutput{Reasons: []decision.Hold{hold}},
		"protection/deletion": decision.DeletionOutput{Reasons: []decision.Hold{hold}},
		// Who configures the webhooks keeps the last answer: see guards.Rules.
		"protection/guards": decision.GuardsOutput{},
	}
}

// No answer that takes the place of a policy's is looser than the policy's could have
// been: whichever way a bundle fails, at every point and for the questions of all cases.
func TestNoFailureIsLooserThanThePolicy(t *testing.T) {
	files, err := cases.Read(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	// Each bundle replaces every point. The first has no answer, the second asks a
	// built-in for nonsense, the third gives an answer of another type.
	bodies := map[string]string{
		"undefined": `%s := {"x": 1} if input.nothing_that_is_known == 7`,
		"failing":   `%s := {"x": to_number("x")}`,
		"wrong":     `%s := "yes"`,
		"late":      `%s := {"x": 1}`,
	}
	for how, body := range bodies {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			e, err := engine.New(policies.Builtin, engine.WithPatience(100))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.Close)
			if err := e.Activate(t.Context(), breaking(t, body)); err != nil {
				t.Fatal(err)
			}
			asked := map[decision.Name]int{}
			for _, f := range files {
				for _, c := range f.Cases {
					p, ok := decision.Find(c.Point)
					if !ok || asked[c.Point] >= 12 {
						continue
					}
					asked[c.Point]++
					in, err := f.Question(c, p)
					if err != nil {
						t.Fatal(err)
					}
					notLooser(t, e, how, p, in, c.Name)
				}
			}
			for _, p := range decision.All() {
				if p.Name != "rollout/rows" && asked[p.Name] == 0 {
					t.Errorf("no case asks %s", p.Name)
				}
			}
		})
	}
}

func notLooser(t *testing.T, e *engine.Engine, how string, p decision.Any, in any, name string) {
	t.Helper()
	ctx := context.Background()
	if how == "late" {
		past, cancel := context.WithDeadline(ctx, time.Unix(0, 0))
		defer cancel()
		ctx = past
	}
	want, ok := strictest(in)[p.Name]
	if !ok {
		t.Fatalf("what is strictest at %s?", p.Name)
	}
	out, rec := engine.DecideOn(ctx, e, e.Snapshot(), p, decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}, in)
	if rec.Outcome == decision.Decided {
		t.Fatalf("%s, %s: the policy answered", p.Name, name)
	}
	if lean := p.Lean(in, want, out); lean == decision.Looser {
		t.Errorf("%s, %s: %s after %s is looser than %+v: %+v", p.Name, name, rec.Outcome, rec.Error, want, out)
	}
}

// breaking is a bundle that replaces every point by a rule with a body.
func breaking(t *testing.T, body string) bundle.Set {
	t.Helper()
	files := map[string]string{}
	for _, p := range decision.All() {
		domain, point, _ := strings.Cut(string(p.Name), "/")
		files[domain+".rego"] += fmt.Sprintf(body, point) + "\n"
	}
	for domain, rules := range files {
		files[domain] = "package override." + strings.TrimSuffix(domain, ".rego") + "\n\nimport future.keywords.not\n\n" + rules
	}
	b, err := bundle.FromFiles("breaking", files)
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Set{b}
}

// A tenant whose policies took more than their share of the processors is not asked:
// what its rules would have held or denied stays held and denied.
func TestAThrottledTenantHoldsAndDenies(t *testing.T) {
	e, err := engine.New(policies.Builtin, engine.WithShare(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	b, err := bundle.FromFiles("strict", map[string]string{
		"r.rego": "package extend.rollout.strict\n\nhold contains {\"reason\": \"R\", \"message\": \"m\"}\n",
		"p.rego": "package extend.protection.strict\n\ndeny contains {\"reason\": \"R\", \"message\": \"m\"}\n",
	}, bundle.AsTenant("shop"))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Activate(t.Context(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	pods := []decision.PodFacts{{Name: "a"}, {Name: "b"}}
	throttled(t, e, decision.RolloutChange(), decision.ChangeInput{Policy: "InPlaceIfPossible", Known: true})
	throttled(t, e, decision.RolloutPlan(), decision.PlanInput{Update: 2, MaxUnavailable: 2, Strategy: decision.Strategy{Type: "RollingUpdate"}})
	throttled(t, e, decision.RolloutRank(), decision.RankInput{Pods: pods})
	throttled(t, e, decision.ProtectionBudget(), decision.BudgetInput{})
	throttled(t, e, decision.ProtectionDeletion(), decision.DeletionInput{})
}

func throttled[In, Out any](t *testing.T, e *engine.Engine, p decision.Point[In, Out], in In) {
	t.Helper()
	out, rec := engine.Decide(t.Context(), e, p, decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}, in)
	if rec.Outcome == decision.Decided {
		t.Fatalf("%s was not throttled", p.Name)
	}
	want, ok := strictest(in)[p.Name].(Out)
	if !ok {
		t.Fatalf("what is strictest at %s?", p.Name)
	}
	if p.Lean(in, want, out) == decision.Looser {
		t.Errorf("%s is looser than %+v: %+v", p.Name, want, out)
	}
}
