// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"reflect"
	"testing"

	"github.com/open-policy-agent/opa/v1/rego"
	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/module"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

// harness gives users' packages as input, so that they need not be compiled.
const harness = `package harness

plan := data.rollout.plan

rank := data.rollout.rank

both := [p, r] if {
	p := plan with input as input.plan with data.extend.rollout as input.users
	r := rank with input as input.rank with data.extend.rollout as input.users
}`

// harnessed prepares a query of a module beside the built-in ones.
func harnessed(t *testing.T, text, query string) rego.PreparedEvalQuery {
	t.Helper()
	modules := builtinModules(t)
	modules["harness.rego"] = parse(t, "harness.rego", text)
	compiler, err := module.Compile(modules)
	if err != nil {
		t.Fatal(err)
	}
	prepared, err := rego.New(rego.Query(query), rego.Compiler(compiler), rego.StrictBuiltinErrors(true)).PrepareForEval(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return prepared
}

// TestNothingThatAUserWritesOpensADecision puts any document where a hold and a
// rank should be. Both points must still answer, within their types; and unless
// the hold is empty something must be held.
func TestNothingThatAUserWritesOpensADecision(t *testing.T) {
	query := harnessed(t, harness, "data.harness.both")
	rank := rollout.RankInput{Pods: []rollout.PodFacts{{Name: "web-a", Zone: "a"}, {Name: "web-b"}}}
	plan := rollout.PlanInput{Strategy: rollout.Strategy{Type: "RollingUpdate"}, Update: 2, MaxUnavailable: 1}
	rapid.Check(t, func(rt *rapid.T) {
		hold := drawDocument(rt, 3)
		users := map[string]any{"x": map[string]any{"hold": hold, "rank": drawDocument(rt, 2)}}
		set, err := query.Eval(t.Context(), rego.EvalInput(map[string]any{"plan": plan, "rank": rank, "users": users}))
		if err != nil || len(set) != 1 {
			rt.Fatalf("no answer to %v: %v", users, err)
		}
		answers := set[0].Expressions[0].Value.([]any)
		planned := typed(t, reflect.TypeFor[rollout.PlanOutput](), answers[0]).(rollout.PlanOutput)
		ranked := typed(t, reflect.TypeFor[rollout.RankOutput](), answers[1]).(rollout.RankOutput)
		if err := rollout.RankPoint().Check(rank, ranked); err != nil {
			rt.Fatal(err)
		}
		if wants := !empty(hold); wants != (len(planned.Holds) > 0 || ofPods(hold)) {
			rt.Fatalf("%v gave the holds %v", hold, planned.Holds)
		}
		for _, h := range append(planned.Holds, ranked.Holds...) {
			if h.Rule == "" || h.Reason == "" || h.Message == "" {
				rt.Fatalf("a hold does not say who holds and why: %+v", h)
			}
		}
	})
}

// drawDocument draws JSON that is often close to a hold.
func drawDocument(t *rapid.T, depth int) any {
	words := rapid.SampledFrom([]string{"", "web-a", "Reason", "A message.", "zone"})
	kind := rapid.IntRange(0, 8).Draw(t, "kind")
	switch {
	case kind == 0:
		return nil
	case kind == 1:
		return rapid.Bool().Draw(t, "bool")
	case kind == 2:
		return rapid.Int32().Draw(t, "number")
	case kind == 3 || depth == 0:
		return words.Draw(t, "word")
	case kind < 6:
		list := []any{}
		for range rapid.IntRange(0, 2).Draw(t, "items") {
			list = append(list, drawDocument(t, depth-1))
		}
		return list
	}
	object := map[string]any{}
	if rapid.Bool().Draw(t, "sound") {
		object["reason"], object["message"] = "Reason", "A message."
	}
	for range rapid.IntRange(0, 3).Draw(t, "fields") {
		field := rapid.SampledFrom([]string{"reason", "message", "pod", "where", "until", "rule", "web-a", "zone"}).Draw(t, "field")
		object[field] = drawDocument(t, depth-1)
	}
	return object
}

// empty documents hold nothing.
func empty(document any) bool {
	switch d := document.(type) {
	case []any:
		return len(d) == 0
	case map[string]any:
		return len(d) == 0
	}
	return false
}

// ofPods reports whether every wish names a pod, which is for rank to answer.
func ofPods(document any) bool {
	var wishes []any
	switch d := document.(type) {
	case []any:
		wishes = d
	case map[string]any:
		for _, wish := range d {
			wishes = append(wishes, wish)
		}
	}
	for _, wish := range wishes {
		object, _ := wish.(map[string]any)
		if pod, _ := object["pod"].(string); pod == "" {
			return false
		}
	}
	return len(wishes) > 0
}
