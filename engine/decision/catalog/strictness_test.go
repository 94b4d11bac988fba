// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/decision/injection"
	"github.com/regatta-sh/regatta/engine/decision/node"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

func TestStrictness(t *testing.T) {
	held := func(holds ...decision.Hold) rollout.PlanOutput {
		return rollout.PlanOutput{Limit: 5, MaxUnavailable: 2, Holds: holds}
	}
	all := decision.Hold{Rule: "a", Reason: "A"}
	zone := func(z string) decision.Hold { return decision.Hold{Rule: "z", Where: map[string]string{"zone": z}} }
	pod := func(name string) decision.Hold { return decision.Hold{Rule: "p", Pod: name} }
	in := func(namespace string, h decision.Hold) decision.Hold { h.Namespace = namespace; return h }
	plan := rollout.PlanInput{Update: -5, MaxUnavailable: 2}
	ranked := func(holds ...decision.Hold) rollout.RankOutput { return rollout.RankOutput{Holds: holds} }
	guard := func(ops []string, namespaces []string, labels map[string]string) protection.GuardsOutput {
		return protection.GuardsOutput{Guards: []protection.Guard{{Resource: "pods", Operations: ops, Namespaces: namespaces, Labels: labels}}}
	}
	failing := guard([]string{"DELETE"}, nil, nil)
	failing.Guards[0].FailurePolicy = protection.FailurePolicyFail
	kind := func(kinds ...protection.ProtectedKind) protection.GuardsOutput {
		return protection.GuardsOutput{Kinds: kinds}
	}
	gold := map[string]string{"tier": "gold"}

	for _, tc := range []struct {
		name      string
		point     decision.Name
		in        any
		then, now any
		// want is how now leans from then, back how then leans from now.
		want, back decision.Strictness
	}{
		{"a change that is rejected", "rollout/change", nil, rollout.ChangeOutput{Action: rollout.InPlace}, rollout.ChangeOutput{Action: rollout.Reject}, decision.Stricter, decision.Looser},
		{"a change in another way", "rollout/change", nil, rollout.ChangeOutput{Action: rollout.InPlace}, rollout.ChangeOutput{Action: rollout.Recreate}, decision.Changed, decision.Changed},
		{"a change rejected for another reason", "rollout/change", nil, rollout.ChangeOutput{Action: rollout.Reject, Reason: "A"}, rollout.ChangeOutput{Action: rollout.Reject, Reason: "B"}, decision.Changed, decision.Changed},

		{"a plan that is held", "rollout/plan", plan, held(), held(all), decision.Stricter, decision.Looser},
		{"a plan held in a zone, then whole", "rollout/plan", plan, held(zone("a")), held(all), decision.Stricter, decision.Looser},
		{"a plan held in another zone", "rollout/plan", plan, held(zone("a")), held(zone("b")), decision.Looser, decision.Looser},
		{"a plan held in one more zone", "rollout/plan", plan, held(zone("a")), held(zone("b"), zone("a")), decision.Stricter, decision.Looser},
		{"a plan with one pod held, then all", "rollout/plan", plan, held(pod("x")), held(all), decision.Stricter, decision.Looser},
		{"a plan with the pods of a name held, then one in a namespace", "rollout/plan", plan, held(pod("x")), held(in("n", pod("x"))), decision.Looser, decision.Stricter},
		{"a plan with a pod held in another namespace", "rollout/plan", plan, held(in("m", pod("x"))), held(in("n", pod("x"))), decision.Looser, decision.Looser},
		{"a plan with one pod of a namespace held, then all", "rollout/plan", plan, held(in("n", pod("x"))), held(in("n", decision.Hold{})), decision.Stricter, decision.Looser},
		{"a plan with a namespace held, then whole", "rollout/plan", plan, held(in("n", decision.Hold{})), held(all), decision.Stricter, decision.Looser},
		{"a plan held by another rule", "rollout/plan", plan, held(all), held(decision.Hold{Rule: "b", Reason: "B"}), decision.Changed, decision.Changed},
		{"a plan held by one more rule", "rollout/plan", plan, held(all), held(all, decision.Hold{Rule: "b"}), decision.Changed, decision.Changed},
		{"a plan with a lower limit", "rollout/plan", plan, held(), rollout.PlanOutput{Limit: 4, MaxUnavailable: 2}, decision.Stricter, decision.Looser},
		{"a plan with fewer unavailable", "rollout/plan", plan, held(), rollout.PlanOutput{Limit: 5, MaxUnavailable: 1}, decision.Stricter, decision.Looser},
		{"a plan that is stricter in one number and looser in another", "rollout/plan", plan, rollout.PlanOutput{Limit: 3, MaxUnavailable: 2}, rollout.PlanOutput{Limit: 4, MaxUnavailable: 1}, decision.Looser, decision.Looser},
		{"a plan with numbers beyond what is heeded", "rollout/plan", plan, held(), rollout.PlanOutput{Limit: 9, MaxUnavailable: 8}, decision.Changed, decision.Changed},
		{"a plan with a lower limit while it is held", "rollout/plan", plan, held(all), rollout.PlanOutput{Limit: 1, Holds: []decision.Hold{all}}, decision.Changed, decision.Changed},
		{"a plan that scatters otherwise", "rollout/plan", plan, held(), rollout.PlanOutput{Limit: 5, MaxUnavailable: 2, Scatter: []rollout.ScatterTerm{{Key: "x"}}}, decision.Changed, decision.Changed},

		{"images of which fewer begin", "node/images", node.ImagesInput{Free: 5}, node.ImagesOutput{Begin: 4}, node.ImagesOutput{Begin: 3}, decision.Stricter, decision.Looser},
		{"images of which more begin than are free", "node/images", node.ImagesInput{Free: 2}, node.ImagesOutput{Begin: 4}, node.ImagesOutput{Begin: 3}, decision.Changed, decision.Changed},
		{"images that are held", "node/images", node.ImagesInput{Free: 5}, node.ImagesOutput{Begin: 4}, node.ImagesOutput{Begin: 4, Holds: []node.Hold{{}}}, decision.Stricter, decision.Looser},
		{"images that are held in a zone, then all", "node/images", node.ImagesInput{Free: 5}, node.ImagesOutput{Begin: 4, Holds: []node.Hold{{Where: map[string]string{"zone": "a"}}}}, node.ImagesOutput{Begin: 4, Holds: []node.Hold{{}}}, decision.Stricter, decision.Looser},
		{"images that are held with less room", "node/images", node.ImagesInput{Free: 5}, node.ImagesOutput{Begin: 4, Holds: []node.Hold{{Room: ptr.To(2)}}}, node.ImagesOutput{Begin: 4, Holds: []node.Hold{{Room: ptr.To(1)}}}, decision.Stricter, decision.Looser},
		{"images that are denied", "node/images", node.ImagesInput{Free: 5}, node.ImagesOutput{Begin: 4}, node.ImagesOutput{Begin: 4, Denials: []node.Denial{{}}}, decision.Stricter, decision.Looser},
		{"a node that is held", "node/rank", nil, node.RankOutput{}, node.RankOutput{Holds: []node.Hold{{Node: "a"}}}, decision.Stricter, decision.Looser},
		{"another node that is held", "node/rank", nil, node.RankOutput{Holds: []node.Hold{{Node: "b"}}}, node.RankOutput{Holds: []node.Hold{{Node: "a"}}}, decision.Looser, decision.Looser},
		{"nodes in another order", "node/rank", nil, node.RankOutput{}, node.RankOutput{Keys: [][]float64{{1}}}, decision.Changed, decision.Changed},
		{"sidecars of which fewer end", "node/termination", node.TerminationInput{Containers: []node.EndingContainer{{Name: "m", Known: true, Terminated: true, Ended: true}, {Name: "s", Known: true}}}, node.TerminationOutput{Stop: []string{"s"}}, node.TerminationOutput{}, decision.Stricter, decision.Looser},
		{"probes of which fewer are taken out", "injection/liveness", injection.LivenessInput{Containers: []injection.LivenessContainer{{Name: "a", Supported: true}}}, injection.LivenessOutput{Take: []string{"a"}}, injection.LivenessOutput{}, decision.Stricter, decision.Looser},
		{"restarts that are charged to the budget", "node/restarts", nil, node.RestartsOutput{}, node.RestartsOutput{Charge: true}, decision.Stricter, decision.Looser},
		{"markers that are held", "node/markers", nil, node.MarkersOutput{}, node.MarkersOutput{Holds: []decision.Hold{{}}}, decision.Stricter, decision.Looser},

		{"a rank that holds a pod", "rollout/rank", nil, ranked(), ranked(pod("x")), decision.Stricter, decision.Looser},
		{"a rank that holds another pod", "rollout/rank", nil, ranked(pod("x")), ranked(pod("y")), decision.Looser, decision.Looser},
		{"a rank in another order", "rollout/rank", nil, ranked(), rollout.RankOutput{Keys: [][]float64{{1}}}, decision.Changed, decision.Changed},

		{"rows that take fewer", "rollout/rows", nil, rollout.RowsOutput{Order: []string{"a", "b"}}, rollout.RowsOutput{Order: []string{"b"}}, decision.Stricter, decision.Looser},
		{"rows that take another", "rollout/rows", nil, rollout.RowsOutput{Order: []string{"a"}}, rollout.RowsOutput{Order: []string{"b"}}, decision.Looser, decision.Looser},
		{"rows in another order", "rollout/rows", nil, rollout.RowsOutput{Order: []string{"a", "b"}}, rollout.RowsOutput{Order: []string{"b", "a"}}, decision.Changed, decision.Changed},

		{"fewer deleted", "rollout/scale", nil, rollout.ScaleOutput{Delete: 2}, rollout.ScaleOutput{Delete: 1}, decision.Stricter, decision.Looser},
		{"fewer created", "rollout/scale", nil, rollout.ScaleOutput{Create: 2}, rollout.ScaleOutput{Create: 1}, decision.Stricter, decision.Looser},
		{"others deleted", "rollout/scale", nil, rollout.ScaleOutput{Delete: 1, Keys: [][]float64{{1}}}, rollout.ScaleOutput{Delete: 1, Keys: [][]float64{{2}}}, decision.Changed, decision.Changed},

		{"a pod that stays", "protection/budget", nil, protection.BudgetOutput{Allow: true}, protection.BudgetOutput{Take: true}, decision.Stricter, decision.Looser},
		{"a pod that goes only by way of exception", "protection/budget", nil, protection.BudgetOutput{Allow: true}, protection.BudgetOutput{Allow: true, Exempt: true}, decision.Stricter, decision.Looser},
		{"a pod that stays where the glass was broken", "protection/budget", nil, protection.BudgetOutput{Allow: true, Exempt: true}, protection.BudgetOutput{}, decision.Stricter, decision.Looser},
		{"a pod that takes one from the budget", "protection/budget", nil, protection.BudgetOutput{Allow: true}, protection.BudgetOutput{Allow: true, Take: true}, decision.Stricter, decision.Looser},
		{"a pod that is noted", "protection/budget", nil, protection.BudgetOutput{Allow: true}, protection.BudgetOutput{Allow: true, Record: protection.RecordDisrupted}, decision.Stricter, decision.Looser},
		{"a pod that is noted elsewhere", "protection/budget", nil, protection.BudgetOutput{Allow: true, Record: protection.RecordUnavailable}, protection.BudgetOutput{Allow: true, Record: protection.RecordDisrupted}, decision.Changed, decision.Changed},
		{"a pod that stays for another reason", "protection/budget", nil, protection.BudgetOutput{}, protection.BudgetOutput{Take: true}, decision.Changed, decision.Changed},

		{"an object that stays", "protection/deletion", nil, protection.DeletionOutput{Allow: true}, protection.DeletionOutput{}, decision.Stricter, decision.Looser},
		{"an object that goes only by way of exception", "protection/deletion", nil, protection.DeletionOutput{Allow: true}, protection.DeletionOutput{Allow: true, Exempt: true}, decision.Stricter, decision.Looser},
		{"an object that stays for another reason", "protection/deletion", nil, protection.DeletionOutput{}, protection.DeletionOutput{Reasons: []decision.Hold{all}}, decision.Changed, decision.Changed},

		{"a guard that fails closed", "protection/guards", nil, guard([]string{"DELETE"}, nil, nil), failing, decision.Stricter, decision.Looser},
		{"one more guard", "protection/guards", nil, protection.GuardsOutput{}, guard([]string{"DELETE"}, nil, nil), decision.Stricter, decision.Looser},
		{"a guard of one more operation", "protection/guards", nil, guard([]string{"DELETE"}, nil, nil), guard([]string{"EVICT", "DELETE"}, nil, nil), decision.Stricter, decision.Looser},
		{"a guard of all namespaces", "protection/guards", nil, guard([]string{"DELETE"}, []string{"a", "b"}, nil), guard([]string{"DELETE"}, nil, nil), decision.Stricter, decision.Looser},
		{"a guard of another namespace", "protection/guards", nil, guard([]string{"DELETE"}, []string{"a"}, nil), guard([]string{"DELETE"}, []string{"b"}, nil), decision.Looser, decision.Looser},
		{"a guard of all labels", "protection/guards", nil, guard([]string{"DELETE"}, nil, gold), guard([]string{"DELETE"}, nil, nil), decision.Stricter, decision.Looser},
		{"one more protected kind", "protection/guards", nil, kind(), kind(protection.ProtectedKind{Resource: "jobs"}), decision.Stricter, decision.Looser},
		{"a kind that is protected with what goes along", "protection/guards", nil, kind(protection.ProtectedKind{Resource: "jobs"}), kind(protection.ProtectedKind{Resource: "jobs", Cascading: "replicas"}), decision.Stricter, decision.Looser},
		{"a kind that is protected with something else", "protection/guards", nil, kind(protection.ProtectedKind{Resource: "jobs", Cascading: "namespace"}), kind(protection.ProtectedKind{Resource: "jobs", Cascading: "replicas"}), decision.Looser, decision.Looser},
		{"answers of another type", "rollout/plan", plan, 1, held(all), decision.Changed, decision.Changed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, ok := catalog.FindPoint(tc.point)
			if !ok {
				t.Fatalf("there is no point %s", tc.point)
			}
			if got := p.Lean(tc.in, tc.then, tc.now); got != tc.want {
				t.Errorf("it is %s, want %s", got, tc.want)
			}
			if got := p.Lean(tc.in, tc.now, tc.then); got != tc.back {
				t.Errorf("the other way it is %s, want %s", got, tc.back)
			}
		})
	}
}

func TestAPointWithoutLeanOnlyChanges(t *testing.T) {
	p := decision.Point[int, int]{Name: "a/b"}.EraseTypes()
	if got := p.Lean(1, 2, 3); got != decision.Changed {
		t.Errorf("it is %s", got)
	}
}
