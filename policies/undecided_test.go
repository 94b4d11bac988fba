// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/cases"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/decision/injection"
	"github.com/regatta-sh/regatta/engine/decision/launchpriority"
	"github.com/regatta-sh/regatta/engine/decision/node"
	"github.com/regatta-sh/regatta/engine/decision/placement"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/test/rules"
)

// strictest has, for each point, the strictest answer that a policy could give. Each
// point is listed: a new one is a missing entry.
func strictest(in any) map[decision.Name]any {
	hold := decision.Hold{Rule: "r", Reason: "R", Message: "m"}
	each := func(pods []rollout.PodFacts) (out rollout.RankOutput) {
		for _, p := range pods {
			h := hold
			h.Pod = p.Name
			out.Holds = append(out.Holds, h)
			out.Keys, out.Lead = append(out.Keys, []float64{0}), append(out.Lead, []float64{0})
		}
		return out
	}
	rank, _ := in.(rollout.RankInput)
	persistent, _ := in.(placement.PersistentInput)
	return map[decision.Name]any{
		"rollout/change":         rollout.ChangeOutput{Action: rollout.Reject, Reason: "R", Message: "m"},
		"rollout/plan":           rollout.PlanOutput{Holds: []decision.Hold{hold}},
		"rollout/rank":           each(rank.Pods),
		"rollout/rows":           rollout.RowsOutput{},
		"rollout/predownload":    rollout.PredownloadOutput{Action: rollout.Wait},
		"rollout/scale":          rollout.ScaleOutput{Planned: rollout.PlannedNone},
		"protection/budget":      protection.BudgetOutput{Reasons: []decision.Hold{hold}},
		"protection/deletion":    protection.DeletionOutput{Reasons: []decision.Hold{hold}},
		"node/images":            node.ImagesOutput{Holds: []node.Hold{{Rule: "r", Reason: "R", Message: "m"}}},
		"node/markers":           node.MarkersOutput{Labels: map[string]string{}, Annotations: map[string]string{}, Holds: []decision.Hold{hold}},
		"node/termination":       node.TerminationOutput{Images: map[string]string{}, Holds: []decision.Hold{hold}},
		"node/rank":              heldNodes(in),
		"node/restarts":          node.RestartsOutput{Holds: []decision.Hold{hold}},
		"placement/distribution": placement.DistributionOutput{Holds: []decision.Hold{hold}},
		"rollout/run":            rollout.RunOutput{Action: rollout.WaitRun, Holds: []decision.Hold{hold}},
		"placement/allocation":   placement.AllocationOutput{Holds: []placement.Hold{{Rule: "r", Reason: "R", Message: "m"}}},
		"placement/persistent":   placement.PersistentPoint().Fallback(persistent),
		"placement/ephemeral":    placement.EphemeralOutput{Holds: []placement.Hold{{Rule: "r", Reason: "R", Message: "m"}}},
		"placement/subset":       placement.SubsetOutput{Holds: []placement.Hold{{Rule: "r", Reason: "R", Message: "m"}}},
		"placement/broadcast":    placement.BroadcastOutput{Holds: []placement.Hold{{Rule: "r", Reason: "R", Message: "m"}}},
		// Who configures the webhooks keeps the last answer: see guards.Rules.
		"protection/guards":    protection.GuardsOutput{},
		"injection/sidecars":   injection.SidecarsOutput{Refuse: []decision.Hold{hold}},
		"injection/resources":  injection.ResourcesOutput{Refuse: []decision.Hold{hold}},
		"injection/liveness":   injection.LivenessOutput{},
		"launchpriority/order": launchpriority.OrderOutput{Refuse: []decision.Hold{hold}},
	}
}

func heldNodes(in any) (out node.RankOutput) {
	rank, _ := in.(node.RankInput)
	for _, n := range rank.Nodes {
		out.Keys = append(out.Keys, []float64{})
		out.Holds = append(out.Holds, node.Hold{Rule: "r", Reason: "R", Message: "m", Node: n.Name})
	}
	return out
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
			e := rules.EngineWith(t, engine.WithPatience(100))
			if err := e.ActivateBundles(t.Context(), breaking(t, body)); err != nil {
				t.Fatal(err)
			}
			asked := map[decision.Name]int{}
			for _, f := range files {
				for _, c := range f.Cases {
					p, ok := catalog.FindPoint(c.Point)
					if !ok || asked[c.Point] >= 12 {
						continue
					}
					asked[c.Point]++
					in, err := f.CaseInput(c, p)
					if err != nil {
						t.Fatal(err)
					}
					notLooser(t, e, how, p, in, c.Name)
				}
			}
			for _, p := range catalog.All() {
				if p.Name != "rollout/rows" && asked[p.Name] == 0 {
					t.Errorf("no case asks %s", p.Name)
				}
			}
		})
	}
}

func notLooser(t *testing.T, e *engine.Engine, how string, p decision.UntypedPoint, in any, name string) {
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
	out, rec := engine.DecideOn(ctx, e, e.ActiveSnapshot(), p, decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}, in)
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
	for _, p := range catalog.All() {
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
	e := rules.EngineWith(t, engine.WithShare(-1))
	b, err := bundle.FromFiles("strict", map[string]string{
		"r.rego": "package extend.rollout.strict\n\nhold contains {\"reason\": \"R\", \"message\": \"m\"}\n",
		"p.rego": "package extend.protection.strict\n\ndeny contains {\"reason\": \"R\", \"message\": \"m\"}\n",
	}, bundle.AsTenant("shop"))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	pods := []rollout.PodFacts{{Name: "a"}, {Name: "b"}}
	// Its rules take no part in how a pod changes, so that is decided as where there are none.
	subject := decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}
	change, rec := engine.Decide(t.Context(), e, rollout.ChangePoint(), subject, rollout.ChangeInput{Policy: "InPlaceIfPossible", Known: true})
	subject.Namespace = "bank"
	other, _ := engine.Decide(t.Context(), e, rollout.ChangePoint(), subject, rollout.ChangeInput{Policy: "InPlaceIfPossible", Known: true})
	if rec.Outcome != decision.Decided || !reflect.DeepEqual(change, other) {
		t.Errorf("rollout/change: %s %+v, and elsewhere %+v", rec.Outcome, change, other)
	}
	throttled(t, e, rollout.PlanPoint(), rollout.PlanInput{Update: 2, MaxUnavailable: 2, Strategy: rollout.Strategy{Type: "RollingUpdate"}})
	throttled(t, e, rollout.RankPoint(), rollout.RankInput{Pods: pods})
	throttled(t, e, protection.BudgetPoint(), protection.BudgetInput{})
	throttled(t, e, protection.DeletionPoint(), protection.DeletionInput{})
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
