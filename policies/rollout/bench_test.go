// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// BenchmarkRank measures rollout/rank alone: input is made of terms beforehand,
// as the engine does with the facts of a pod that it has seen.
func BenchmarkRank(b *testing.B) {
	strategies := map[string]points.Strategy{
		"default": {},
		"weight":  {Weights: []int{10, 20}},
		"order":   {OrderKeys: []string{"tier"}},
	}
	for _, by := range []string{"default", "weight", "order"} {
		for _, pods := range []int{10, 1000, 10000} {
			b.Run(fmt.Sprintf("%s/%d", by, pods), func(b *testing.B) {
				measure(b, points.RankInput{Strategy: strategies[by], Pods: somePods(pods)}, pods)
			})
		}
	}
}

// BenchmarkRankUsers is BenchmarkRank with a user's package that ranks by label.
func BenchmarkRankUsers(b *testing.B) {
	module := rego.Module("users.rego", `package extend.rollout.gold_last

rank := {pod.name: 1 | some pod in input.pods; pod.labels.tier == "gold"}`)
	for _, pods := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprint(pods), func(b *testing.B) {
			measure(b, points.RankInput{Pods: somePods(pods)}, pods, module)
		})
	}
}

// BenchmarkOthers measures the points that do not depend on the number of pods,
// and a scale-in of a thousand.
func BenchmarkOthers(b *testing.B) {
	rolling := points.Strategy{Type: "RollingUpdate", Policy: "InPlaceIfPossible", ScaleMaxUnavailable: 1 << 30}
	b.Run("change", func(b *testing.B) {
		run(b, "change", points.ChangeInput{Policy: rolling.Policy, Known: true, Changes: []points.TemplateChange{{Class: points.ChangeImage}}})
	})
	b.Run("plan", func(b *testing.B) {
		run(b, "plan", points.PlanInput{Strategy: rolling, Update: 100, MaxUnavailable: 20})
	})
	b.Run("run", func(b *testing.B) {
		run(b, "run", points.RunInput{Run: points.Run{Kind: "Job", Scheduled: 1, Concurrency: points.Forbid, Active: []string{"a"}}})
	})
	b.Run("scale-up", func(b *testing.B) { run(b, "scale", points.ScaleInput{Strategy: rolling, Up: 100}) })
	b.Run("scale-in", func(b *testing.B) {
		in := points.ScaleInput{Strategy: rolling, Down: 100}
		for _, pod := range somePods(1000) {
			in.Pods = append(in.Pods, points.VictimFacts{PodFacts: pod})
		}
		run(b, "scale", in)
	})
}

func measure(b *testing.B, in points.RankInput, pods int, modules ...func(*rego.Rego)) {
	b.Helper()
	run(b, "rank", in, modules...)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(pods)/1000, "us/pod")
}

func run(b *testing.B, point string, in any, modules ...func(*rego.Rego)) {
	b.Helper()
	options := append([]func(*rego.Rego){rego.Query("data.rollout." + point + " = _"), rego.Load([]string{"."}, nil)}, modules...)
	query, err := rego.New(options...).PrepareForEval(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	input := term(b, in)
	b.ReportAllocs()
	for b.Loop() {
		if set, err := query.Eval(context.Background(), rego.EvalParsedInput(input)); err != nil || len(set) != 1 {
			b.Fatal(err, len(set))
		}
	}
}

func somePods(n int) []points.PodFacts {
	pods := make([]points.PodFacts, n)
	for i := range pods {
		pods[i] = points.PodFacts{
			Name: fmt.Sprintf("web-%05d", i), Node: fmt.Sprintf("node-%d", i%40), Zone: "a",
			Labels:   map[string]string{"app": "web", "tier": []string{"gold", "tin"}[i%2]},
			Assigned: 1, Phase: 2, Ready: i % 2, ReadySince: int64(i), Created: int64(i), Matches: []int{i % 2},
		}
	}
	return pods
}

func term(b *testing.B, in any) ast.Value {
	b.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		b.Fatal(err)
	}
	value, err := ast.ValueFromReader(bytes.NewReader(text))
	if err != nil {
		b.Fatal(err)
	}
	return value
}
