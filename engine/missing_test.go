// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/injection"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/policies"
)

// Where a bundle is missing, the points that it takes part in answer their strict
// fallbacks, where it holds and nowhere else.
func TestMissing(t *testing.T) {
	e, err := engine.New(policies.Builtin, engine.WithPatience(20))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	exempts, err := bundle.FromFiles("exempts", map[string]string{"a.rego": "package extend.protection.exempts\n\nexempt contains {\"reason\": \"Fire\", \"message\": \"m\"} if input.object.name == \"burning\"\n"})
	if err != nil {
		t.Fatal(err)
	}
	activate := func(missing ...engine.Missing) {
		t.Helper()
		s, err := e.CompileMissing(t.Context(), bundle.Set{exempts}, missing)
		if err == nil {
			err = e.Swap(s)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	plan := func(namespace string) bool {
		out, rec := engine.Decide(t.Context(), e, rollout.PlanPoint(), decision.Subject{Kind: "CloneSet", Namespace: namespace, Name: "web"}, rollout.PlanInput{Update: 3, MaxUnavailable: 1, Strategy: rollout.Strategy{Type: "RollingUpdate"}})
		if strict := rec.Outcome != decision.Decided; strict != (out.Limit == 0) {
			t.Errorf("in %s the outcome is %s %s, and the answer %+v", namespace, rec.Outcome, rec.Error, out)
		}
		return rec.Outcome != decision.Decided
	}
	deletion := func(namespace, name string) protection.DeletionOutput {
		in := protection.DeletionInput{Request: protection.Request{Operation: protection.Delete}, Object: protection.Object{Kind: "ConfigMap", Namespace: namespace, Name: name}}
		out, _ := engine.Decide(t.Context(), e, protection.DeletionPoint(), decision.Subject{Kind: "ConfigMap", Namespace: namespace, Name: name}, in)
		return out
	}
	rank := func(namespace string) bool {
		return e.ActiveSnapshot().IsPointExtended(rollout.RankPoint().Name, decision.Subject{Namespace: namespace})
	}
	rows := func(namespace string) bool {
		return e.IsPointDefined(rollout.RowsPoint().Name, decision.Subject{Namespace: namespace})
	}
	for name, tc := range map[string]struct {
		missing engine.Missing
		// strict says where, and for which points.
		plan, deletion, rank, rows string
	}{
		"of a namespace":             {engine.Missing{Bundle: "shop/own", Namespaces: []string{"shop"}}, "shop", "shop", "shop", "shop"},
		"of a namespace, one point":  {engine.Missing{Bundle: "shop/own", Namespaces: []string{"shop"}, Points: []decision.Name{"rollout/plan"}}, "shop", "", "", ""},
		"of the platform":            {engine.Missing{Bundle: "all"}, "shop bank", "shop bank", "shop bank", "shop bank"},
		"of the platform, deletions": {engine.Missing{Bundle: "all", Points: []decision.Name{"protection/deletion"}}, "", "shop bank", "", ""},
		"one that spares":            {engine.Missing{Bundle: "all", Spares: func(s decision.Subject) bool { return s.Namespace == "shop" }}, "bank", "bank", "bank", "bank"},
	} {
		activate()
		before := map[string]string{}
		for _, ns := range []string{"shop", "bank"} {
			before[ns] = e.ActiveSnapshot().RevisionFor(decision.Subject{Namespace: ns})
		}
		activate(tc.missing)
		for _, ns := range []string{"shop", "bank"} {
			for what, got := range map[string][2]bool{
				"plan":     {plan(ns), strings.Contains(tc.plan, ns)},
				"deletion": {!deletion(ns, "x").Allow, strings.Contains(tc.deletion, ns)},
				"rank":     {rank(ns), strings.Contains(tc.rank, ns)},
				"rows":     {rows(ns), strings.Contains(tc.rows, ns)},
			} {
				if got[0] != got[1] {
					t.Errorf("%s: in %s %s is strict: %t", name, ns, what, got[0])
				}
			}
			if !deletion(ns, "burning").Allow {
				t.Errorf("%s: in %s the exemption of a bundle that is there is gone", name, ns)
			}
			if now := e.ActiveSnapshot().RevisionFor(decision.Subject{Namespace: ns}); (now != before[ns]) != strings.Contains(tc.plan+tc.deletion, ns) {
				t.Errorf("%s: in %s the revision is %s after %s", name, ns, now, before[ns])
			}
		}
		// To compile what is active with another bundle does not bring it back.
		if err := e.ActivateBundles(t.Context(), bundle.Set{}); err != nil {
			t.Fatal(err)
		}
		if got := e.ActiveSnapshot().MissingBundles(); len(got) != 1 || !got[0].Equal(tc.missing) {
			t.Errorf("%s: after another change there are missing %+v", name, got)
		}
	}
}

func TestPointsOf(t *testing.T) {
	e, err := engine.New(policies.Builtin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	for name, tc := range map[string]struct {
		text      string
		in, notIn []decision.Name
		tenant    bool
	}{
		"a hold":       {"package extend.rollout.x\nhold contains {\"reason\": \"R\", \"message\": \"m\"}", []decision.Name{"rollout/plan"}, []decision.Name{"protection/deletion"}, true},
		"a denial":     {"package extend.protection.x\ndeny contains {\"reason\": \"R\", \"message\": \"m\"}", []decision.Name{"protection/deletion", "protection/budget"}, []decision.Name{"rollout/plan"}, false},
		"a skip":       {"package extend.injection.x\nskip contains {\"set\": \"a\", \"reason\": \"R\", \"message\": \"m\"}", []decision.Name{"injection/sidecars"}, []decision.Name{"injection/user_adds"}, false},
		"an add":       {"package extend.injection.x\nadd contains {\"set\": \"a\", \"reason\": \"R\", \"message\": \"m\"}", []decision.Name{"injection/sidecars", "injection/user_adds"}, nil, false},
		"a new answer": {"package override.injection\nsidecars := {}", []decision.Name{injection.SidecarsPoint().Name, "injection/user_adds"}, []decision.Name{"rollout/plan"}, false},
	} {
		var opts []bundle.Option
		if tc.tenant {
			opts = append(opts, bundle.AsTenant("shop"))
		}
		b, err := bundle.FromFiles("x", map[string]string{"x.rego": tc.text}, opts...)
		if err != nil {
			t.Fatal(err)
		}
		s, err := e.CompileBundles(t.Context(), bundle.Set{b})
		if err != nil {
			t.Fatal(err)
		}
		got := s.PointsOf(b)
		for _, p := range tc.in {
			if !slices.Contains(got, p) {
				t.Errorf("%s: %s is not among %v", name, p, got)
			}
		}
		for _, p := range tc.notIn {
			if slices.Contains(got, p) {
				t.Errorf("%s: %s is among %v", name, p, got)
			}
		}
	}
}
