// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/metrics"
)

func TestWhatIsCounted(t *testing.T) {
	c := metrics.New()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	policy := "package rollout\nplan := {\"limit\": 1, \"maxUnavailable\": 1, \"holds\": [], \"scatter\": []} if input.update > 0"
	e, err := engine.New(fstest.MapFS{"p.rego": {Data: []byte(policy)}}, append(c.EngineOptions(), engine.WithPatience(20))...) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, n := range []int{0, 1, 2} {
		engine.Decide(context.Background(), e, rollout.PlanPoint(), decision.Subject{}, rollout.PlanInput{Update: n})
	}
	b, err := bundle.FromFiles("a", map[string]string{"a.rego": "package extend.rollout.a\nrank := {}"})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ActivateBundles(context.Background(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	c.EvaluationStuck("rollout/plan", 1)
	c.RolledBack(engine.Rollback{})
	c.BundlesWithheld(bundle.Set{{Name: "gone"}})
	c.BundlesWithheld(bundle.Set{{Name: "loop"}, {Name: "own", Namespace: "shop"}})
	for _, name := range []string{"freeze", "gone", "freeze"} {
		c.ShadowCompared(name, "rollout/plan", "looser")
	}
	c.ShadowDropped("gone")
	c.DecisionThrottled("shop", "rollout/plan")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got.WriteString(f.GetName() + " " + m.String() + "\n")
		}
	}
	for _, want := range []string{
		`regatta_decisions_total label:{name:"outcome" value:"Decided"} label:{name:"point" value:"rollout/plan"} counter:{value:2`,
		`regatta_decisions_total label:{name:"outcome" value:"Undefined"} label:{name:"point" value:"rollout/plan"} counter:{value:1`,
		`regatta_evaluations_stuck label:{name:"point" value:"rollout/plan"} gauge:{value:1}`,
		`regatta_bundles_withheld label:{name:"bundle" value:"loop"} label:{name:"namespace" value:""} gauge:{value:1`,
		`regatta_bundles_withheld label:{name:"bundle" value:"own"} label:{name:"namespace" value:"shop"} gauge:{value:1`,
		`regatta_rollbacks_total label:{name:"namespace" value:""} counter:{value:1`,
		`regatta_decisions_throttled_total label:{name:"namespace" value:"shop"} label:{name:"point" value:"rollout/plan"} counter:{value:1`,
		`regatta_policies_active label:{name:"revision" value:"` + bundle.ShortRevision(e.ActiveSnapshot().Revision()) + `"} gauge:{value:1}`,
		`sample_count:3`,
		`regatta_shadow_decisions_total label:{name:"bundle" value:"freeze"} label:{name:"point" value:"rollout/plan"} label:{name:"result" value:"looser"} counter:{value:2`,
	} {
		if !strings.Contains(strings.Join(strings.Fields(got.String()), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("there is no %s in\n%s", want, got.String())
		}
	}
	if strings.Contains(got.String(), "gone") {
		t.Error("a shadow that ended, or a bundle that is not withheld any more, is still there")
	}
}
