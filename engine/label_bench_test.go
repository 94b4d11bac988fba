// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"os"
	"testing"

	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

// BenchmarkLabels is what it costs to record which rules took part.
func BenchmarkLabels(b *testing.B) {
	e, err := New(os.DirFS("../policies"))
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	input, err := e.codec.Encode(rollout.PlanInput{
		Workload: rollout.Workload{Kind: "CloneSet", Namespace: "shop", Name: "web"},
		Strategy: rollout.Strategy{Type: "RollingUpdate", Policy: "InPlaceIfPossible"}, Update: 3, MaxUnavailable: 1,
	})
	if err != nil {
		b.Fatal(err)
	}
	q, err := e.ActiveSnapshot().cluster.platform.preparedQuery(context.Background(), "rollout/plan")
	if err != nil {
		b.Fatal(err)
	}
	for name, track := range map[string]bool{"without": false, "with": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				opts := []rego.EvalOption{
					rego.EvalParsedInput(input), rego.EvalTransaction(q.txn), rego.EvalExternalCancel(&evaluationBrake{}), rego.EvalMetrics(metrics.NoOp()),
				}
				if track {
					opts = append(opts, rego.EvalEvaluatedRuleTracker(&topdown.EvaluatedRuleTracker{}))
				}
				if _, err := q.prepared.Eval(context.Background(), opts...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
