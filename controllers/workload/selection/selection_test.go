// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

func TestClamp(t *testing.T) {
	tests := map[string]struct {
		in   rollout.PlanInput
		out  rollout.PlanOutput
		want Limits
	}{
		"a plan that asks for what there is":           {rollout.PlanInput{Update: 5, MaxUnavailable: 2}, rollout.PlanOutput{Limit: 5, MaxUnavailable: 2}, Limits{Limit: 5, MaxUnavailable: 2}},
		"a plan that asks for less":                    {rollout.PlanInput{Update: 5, MaxUnavailable: 2}, rollout.PlanOutput{Limit: 3, MaxUnavailable: 1}, Limits{Limit: 3, MaxUnavailable: 1}},
		"a plan that asks for more":                    {rollout.PlanInput{Update: 5, MaxUnavailable: 2}, rollout.PlanOutput{Limit: 9, MaxUnavailable: 9}, Limits{Limit: 5, MaxUnavailable: 2}},
		"a plan that asks for less than nothing":       {rollout.PlanInput{Update: 5, MaxUnavailable: 2}, rollout.PlanOutput{Limit: -1, MaxUnavailable: -1}, Limits{Limit: 0, MaxUnavailable: -1}},
		"pods that go back":                            {rollout.PlanInput{Update: -5, MaxUnavailable: 2}, rollout.PlanOutput{Limit: 9, MaxUnavailable: 2}, Limits{Limit: 5, MaxUnavailable: 2}},
		"nothing may be unavailable":                   {rollout.PlanInput{Update: 5, MaxUnavailable: 0}, rollout.PlanOutput{Limit: 5, MaxUnavailable: 2}, Limits{Limit: 5, MaxUnavailable: 0}},
		"less than nothing may be, as while it scales": {rollout.PlanInput{Update: 5, MaxUnavailable: -3}, rollout.PlanOutput{Limit: 5, MaxUnavailable: 2}, Limits{Limit: 5, MaxUnavailable: -3}},
		"no answer": {rollout.PlanInput{Update: 5, MaxUnavailable: 2}, rollout.PlanOutput{}, Limits{Limit: 0, MaxUnavailable: 0}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ClampPlan(tc.in, tc.out); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func inShop(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

// candidates are named by letters; an upper-case one is available.
func candidates(letters string) []Candidate {
	var out []Candidate
	for _, l := range letters {
		out = append(out, Candidate{Pod: inShop(string(l)), Available: l < 'a', Groups: map[string]string{"zone": "z"}})
	}
	return out
}

func TestWalk(t *testing.T) {
	inZone := func(c []Candidate, zone string, names ...string) []Candidate {
		for i := range c {
			if slices.Contains(names, c[i].Pod.Name) {
				c[i].Groups = map[string]string{"zone": zone}
			}
		}
		return c
	}
	held := func(c []Candidate, name string) []Candidate {
		for i := range c {
			if c[i].Pod.Name == name {
				c[i].Hold = &decision.Hold{Rule: "rank", Reason: "NotYet"}
			}
		}
		return c
	}
	closed := decision.Hold{Rule: "zones", Reason: "Closed", Where: map[string]string{"zone": "b"}}
	tests := map[string]struct {
		cands   []Candidate
		holds   []decision.Hold
		lim     Limits
		un      Unavailable
		taken   []string
		skipped map[string]string
	}{
		"as many as may be unavailable": {
			candidates("ABC"), nil, Limits{Limit: 3, MaxUnavailable: 2}, Unavailable{}, []string{"A", "B"}, map[string]string{"C": ReasonMaxUnavailable},
		},
		"as many as are to be moved": {
			candidates("ABC"), nil, Limits{Limit: 1, MaxUnavailable: 3}, Unavailable{}, []string{"A"}, map[string]string{"B": ReasonLimit, "C": ReasonLimit},
		},
		"pods that are unavailable use up the room of those that are not": {
			candidates("ABC"), nil, Limits{Limit: 3, MaxUnavailable: 2}, Unavailable{Total: 1}, []string{"A"}, map[string]string{"B": ReasonMaxUnavailable, "C": ReasonMaxUnavailable},
		},
		"but need none of their own": {
			candidates("abC"), nil, Limits{Limit: 3, MaxUnavailable: 2}, Unavailable{Total: 2}, []string{"a", "b"}, map[string]string{"C": ReasonMaxUnavailable},
		},
		"at the target revision no more than that are unavailable at once": {
			candidates("abc"), nil, Limits{Limit: 3, MaxUnavailable: 2}, Unavailable{Total: 3}, []string{"a", "b"}, map[string]string{"c": ReasonMaxUnavailable},
		},
		"those that are count": {
			candidates("abc"), nil, Limits{Limit: 3, MaxUnavailable: 2}, Unavailable{Total: 4, AtTarget: 1}, []string{"a"}, map[string]string{"b": ReasonMaxUnavailable, "c": ReasonMaxUnavailable},
		},
		"the walk stops at the first without room, and takes none after it": {
			candidates("Ab"), nil, Limits{Limit: 2, MaxUnavailable: 2}, Unavailable{Total: 2}, nil, map[string]string{"A": ReasonMaxUnavailable, "b": ReasonMaxUnavailable},
		},
		"nothing may be unavailable": {
			candidates("Aa"), nil, Limits{Limit: 2, MaxUnavailable: 0}, Unavailable{}, nil, map[string]string{"A": ReasonMaxUnavailable, "a": ReasonMaxUnavailable},
		},
		"less than nothing may be": {
			candidates("A"), nil, Limits{Limit: 2, MaxUnavailable: -3}, Unavailable{}, nil, map[string]string{"A": ReasonMaxUnavailable},
		},
		"a pod that is held is passed over and uses up nothing": {
			held(candidates("ABC"), "A"), nil, Limits{Limit: 1, MaxUnavailable: 1}, Unavailable{}, []string{"B"}, map[string]string{"A": "NotYet", "C": ReasonLimit},
		},
		"pods of a group that is held are passed over": {
			inZone(candidates("ABC"), "b", "A", "B"), []decision.Hold{closed}, Limits{Limit: 3, MaxUnavailable: 3}, Unavailable{}, []string{"C"}, map[string]string{"A": "Closed", "B": "Closed"},
		},
		"a hold of two dimensions needs both": {
			inZone(candidates("A"), "b", "A"), []decision.Hold{{Reason: "Closed", Where: map[string]string{"zone": "b", "region": "r"}}}, Limits{Limit: 1, MaxUnavailable: 1}, Unavailable{}, []string{"A"}, nil,
		},
		"a hold of a plan may name a pod": {
			candidates("AB"), []decision.Hold{{Reason: "Closed", Pod: "B"}}, Limits{Limit: 2, MaxUnavailable: 2}, Unavailable{}, []string{"A"}, map[string]string{"B": "Closed"},
		},
		"a hold of a plan may name a pod in a namespace": {
			candidates("AB"), []decision.Hold{{Reason: "Closed", Pod: "B", Namespace: "shop"}}, Limits{Limit: 2, MaxUnavailable: 2}, Unavailable{}, []string{"A"}, map[string]string{"B": "Closed"},
		},
		"a hold of a pod in another namespace holds none here": {
			candidates("AB"), []decision.Hold{{Reason: "Closed", Pod: "B", Namespace: "bank"}}, Limits{Limit: 2, MaxUnavailable: 2}, Unavailable{}, []string{"A", "B"}, nil,
		},
		"a hold of a namespace holds all pods in it": {
			append(candidates("AB"), Candidate{Pod: types.NamespacedName{Namespace: "bank", Name: "C"}, Available: true}),
			[]decision.Hold{{Reason: "Closed", Namespace: "shop"}}, Limits{Limit: 3, MaxUnavailable: 3}, Unavailable{}, []string{"C"}, map[string]string{"A": "Closed", "B": "Closed"},
		},
		"a hold of all holds all": {
			candidates("AB"), []decision.Hold{{Reason: "Closed"}}, Limits{Limit: 2, MaxUnavailable: 2}, Unavailable{}, nil, map[string]string{"A": "Closed", "B": "Closed"},
		},
		"after the walk stopped a pod is still told of its own hold": {
			held(candidates("ABC"), "C"), nil, Limits{Limit: 1, MaxUnavailable: 3}, Unavailable{}, []string{"A"}, map[string]string{"B": ReasonLimit, "C": "NotYet"},
		},
		"those unavailable already may go first, among as many as are to be moved": {
			candidates("AbcD"), nil, Limits{Limit: 3, MaxUnavailable: 2, Unavailable: rollout.UnavailableFirst}, Unavailable{Total: 2}, []string{"b", "c"}, map[string]string{"A": ReasonMaxUnavailable, "D": ReasonMaxUnavailable},
		},
		"going first needs room at the target": {
			candidates("Abc"), nil, Limits{Limit: 3, MaxUnavailable: 1, Unavailable: rollout.UnavailableFirst}, Unavailable{Total: 2}, []string{"b"}, map[string]string{"A": ReasonMaxUnavailable, "c": ReasonMaxUnavailable},
		},
		"or all of them go, and only the others need room": {
			candidates("AbcD"), nil, Limits{Limit: 4, MaxUnavailable: 3, Unavailable: rollout.UnavailableAlways}, Unavailable{Total: 2}, []string{"b", "c", "A"}, map[string]string{"D": ReasonMaxUnavailable},
		},
		"even where too many are unavailable": {
			candidates("Abc"), nil, Limits{Limit: 3, MaxUnavailable: 1, Unavailable: rollout.UnavailableAlways}, Unavailable{Total: 4, AtTarget: 2}, []string{"b", "c"}, map[string]string{"A": ReasonMaxUnavailable},
		},
		"the limit keeps those of them that come late in the order": {
			candidates("Abc"), nil, Limits{Limit: 2, MaxUnavailable: 5, Unavailable: rollout.UnavailableAlways}, Unavailable{Total: 2}, []string{"b", "A"}, map[string]string{"c": ReasonLimit},
		},
		"one that is held uses up nothing of the limit": {
			held(candidates("bcA"), "b"), nil, Limits{Limit: 1, MaxUnavailable: 5, Unavailable: rollout.UnavailableAlways}, Unavailable{Total: 2}, []string{"c"}, map[string]string{"b": "NotYet", "A": ReasonLimit},
		},
		"no pod waits": {nil, []decision.Hold{closed}, Limits{Limit: 2, MaxUnavailable: 2}, Unavailable{}, nil, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			taken, skipped := WalkCandidates(tc.cands, tc.holds, tc.lim, tc.un)
			var names []string
			for _, pod := range taken {
				names = append(names, pod.Name)
			}
			if !slices.Equal(names, tc.taken) {
				t.Errorf("took %v, want %v", names, tc.taken)
			}
			got := map[string]string{}
			for _, s := range skipped {
				got[s.Pod.Name] = s.Hold.Reason
				if ours := s.Hold.Reason == ReasonLimit || s.Hold.Reason == ReasonMaxUnavailable; s.Hold.IsFromWalk() != ours {
					t.Errorf("the hold %q says it is ours: %v", s.Hold.Reason, s.Hold.IsFromWalk())
				}
			}
			if len(got) != len(tc.skipped) || cmp.Diff(tc.skipped, got) != "" && len(got) > 0 {
				t.Errorf("skipped %v, want %v", got, tc.skipped)
			}
		})
	}
}

// Whatever a plan answers, a walk takes no more pods than differ, makes no more
// unavailable than may be, takes none that is held, and accounts for each once.
func TestNoPlanMakesAWalkGoTooFar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := rapid.OneOf(rapid.IntRange(-3, 12), rapid.SampledFrom([]int{math.MinInt, math.MaxInt}))
		in := rollout.PlanInput{
			Update:         rapid.IntRange(-12, 12).Draw(t, "update"),
			MaxUnavailable: rapid.IntRange(-5, 12).Draw(t, "maxUnavailable"),
		}
		out := rollout.PlanOutput{Limit: limits.Draw(t, "planned limit"), MaxUnavailable: limits.Draw(t, "planned maxUnavailable")}
		for range rapid.IntRange(0, 3).Draw(t, "holds") {
			h := decision.Hold{Rule: "r", Reason: "Held"}
			if rapid.Bool().Draw(t, "by zone") {
				h.Where = map[string]string{"zone": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "held zone")}
			}
			if rapid.Bool().Draw(t, "by pod") {
				h.Pod = fmt.Sprint("p", rapid.IntRange(0, 5).Draw(t, "held pod"))
			}
			if rapid.Bool().Draw(t, "by namespace") {
				h.Namespace = rapid.SampledFrom([]string{"n0", "n1"}).Draw(t, "held namespace")
			}
			out.Holds = append(out.Holds, h)
		}
		var cands []Candidate
		byPod := map[types.NamespacedName]Candidate{}
		un := Unavailable{Total: rapid.IntRange(0, 4).Draw(t, "others unavailable")}
		un.AtTarget = rapid.IntRange(0, un.Total).Draw(t, "at the target")
		for i := range rapid.IntRange(0, 15).Draw(t, "candidates") {
			c := Candidate{
				Pod: types.NamespacedName{Namespace: fmt.Sprint("n", i%2), Name: fmt.Sprint("p", i/2)}, Available: rapid.Bool().Draw(t, "available"),
				Groups: map[string]string{"zone": rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "zone")},
			}
			if rapid.IntRange(0, 4).Draw(t, "hold") == 0 {
				c.Hold = &decision.Hold{Reason: "Own"}
			}
			if !c.Available {
				un.Total++
			}
			cands, byPod[c.Pod] = append(cands, c), c
		}

		lim := ClampPlan(in, out)
		if lim.Limit < 0 || lim.Limit > max(in.Update, -in.Update) || lim.MaxUnavailable > in.MaxUnavailable {
			t.Fatalf("%+v allows more than %+v", lim, in)
		}
		taken, skipped := WalkCandidates(slices.Clone(cands), out.Holds, lim, un)
		if len(taken) > max(in.Update, -in.Update) {
			t.Fatalf("%d pods are moved, %d differ", len(taken), in.Update)
		}
		disrupted := 0
		for _, pod := range taken {
			c := byPod[pod]
			if c.Hold != nil {
				t.Fatalf("%s is held, and taken", pod)
			}
			for _, h := range out.Holds {
				if (h.Pod == "" || h.Pod == pod.Name) && (h.Namespace == "" || h.Namespace == pod.Namespace) && (h.Where == nil || h.Where["zone"] == c.Groups["zone"]) {
					t.Fatalf("%s is held by %+v, and taken", pod, h)
				}
			}
			if c.Available {
				disrupted++
			}
		}
		if disrupted > 0 && un.Total+disrupted > in.MaxUnavailable {
			t.Fatalf("%d are unavailable, %d more are made so, %d may be", un.Total, disrupted, in.MaxUnavailable)
		}
		if len(taken) > 0 && un.AtTarget+len(taken) > in.MaxUnavailable {
			t.Fatalf("%d are unavailable at the target, %d more come, %d may be", un.AtTarget, len(taken), in.MaxUnavailable)
		}
		var names []string
		for _, pod := range taken {
			names = append(names, pod.String())
		}
		for _, s := range skipped {
			names = append(names, s.Pod.String())
		}
		slices.Sort(names)
		if n := len(names); n != len(cands) || len(slices.Compact(names)) != n {
			t.Fatalf("of %d candidates %d are accounted for: %v", len(cands), n, names)
		}
	})
}
