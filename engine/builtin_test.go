// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/util"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/term"
)

func planInput() rollout.PlanInput {
	return rollout.PlanInput{
		Now:      1_700_000_000_000_000_000,
		Workload: rollout.Workload{Kind: "CloneSet", Namespace: "shop", Name: "web", UID: "u", Replicas: 1000, Labels: map[string]string{"app": "web"}},
		Strategy: rollout.Strategy{Type: "RollingUpdate", Policy: "InPlaceIfPossible", MaxUnavailable: 200, ScaleMaxUnavailable: 1 << 30},
		Counts:   rollout.Counts{Total: 1000, Ready: 1000, Available: 1000}, Revisions: rollout.Revisions{Current: "a", Update: "b"},
		Update: 10, MaxUnavailable: 200,
		Groups: map[string]map[string]rollout.Group{"zone": {"a": {Total: 500}, "b": {Total: 500}}},
	}
}

func rankInput(n int) rollout.RankInput {
	in := rollout.RankInput{Workload: planInput().Workload, Strategy: planInput().Strategy}
	for i := range n {
		in.Pods = append(in.Pods, rollout.PodFacts{
			Name: fmt.Sprintf("web-%05d", i), Node: fmt.Sprintf("node-%d", i%40), Zone: "a",
			Labels:   map[string]string{"app": "web", "tier": []string{"gold", "tin"}[i%2]},
			Assigned: 1, Phase: 2, Ready: i % 2, ReadySince: int64(i), Created: int64(i), Matches: []int{i % 2},
		})
	}
	return in
}

func BenchmarkBuiltin(b *testing.B) {
	e, err := engine.New(os.DirFS("../policies"))
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	must := func(b *testing.B, rec decision.Record) {
		if rec.Outcome != decision.Decided {
			b.Fatal(rec.Outcome, rec.Error)
		}
	}
	b.Run("plan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, rec := engine.Decide(context.Background(), e, rollout.PlanPoint(), subject(), planInput())
			must(b, rec)
		}
	})
	for _, n := range []int{1, 10, 1000} {
		in := rankInput(n)
		b.Run(fmt.Sprint("rank/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, rec := engine.Decide(context.Background(), e, rollout.RankPoint(), subject(), in)
				must(b, rec)
			}
		})
		b.Run(fmt.Sprint("encode/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Codec().Encode(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkInput is what it costs to tell a policy about a thousand pods.
func BenchmarkInput(b *testing.B) {
	in := rankInput(1000)
	c := &term.Codec{}
	b.Run("through JSON", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var x any = in
			if err := util.RoundTrip(&x); err != nil {
				b.Fatal(err)
			}
			if _, err := ast.InterfaceToValue(x); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("from structs", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Encode(in); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("with terms that are kept", func(b *testing.B) {
		terms := make([]*ast.Term, len(in.Pods))
		for i, p := range in.Pods {
			v, err := c.Encode(p)
			if err != nil {
				b.Fatal(err)
			}
			terms[i] = ast.NewTerm(v)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Encode(in, term.Given{Field: "pods", Value: ast.NewArray(terms...)}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
