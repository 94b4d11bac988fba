// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"maps"
	"testing"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/decision/launchpriority"
	"github.com/regatta-sh/regatta/test/rules"
)

// Where no policy decides, containers start in the order that the pod declares, which is what the built-in one
// says in all cases.
func TestPodsStartAsTheyDeclareWithoutADecision(t *testing.T) {
	e := rules.Engine(t, "")
	point, asked := launchpriority.OrderPoint(), 0
	untyped, _ := catalog.FindPoint(point.Name)
	for _, file := range caseFiles(t) {
		for _, c := range file.Cases {
			if c.Point != point.Name || len(c.Bundles) > 0 {
				continue
			}
			question, err := file.CaseInput(c, untyped)
			if err != nil {
				t.Fatal(err)
			}
			in, ok := question.(launchpriority.OrderInput)
			if !ok {
				t.Fatalf("%s: the question is a %T", c.Name, question)
			}
			asked++
			want, record := engine.Decide(t.Context(), e, point, decision.Subject{Kind: "Pod", Namespace: in.Namespace, Name: in.Name}, in)
			got := point.Fallback(in)
			if record.Outcome != decision.Decided || !maps.Equal(got.Priorities, want.Priorities) || len(got.Refuse) != len(want.Refuse) {
				t.Errorf("%s: %s: %+v, want %+v", c.Name, record.Outcome, got, want)
			}
		}
	}
	if asked < 20 {
		t.Errorf("there are %d cases", asked)
	}
}
