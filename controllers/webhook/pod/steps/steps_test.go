// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/featuregate"

	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/engine/decision"
)

// What is built, and what of it each gate has the API server send.
func TestTheStepsThatAreBuilt(t *testing.T) {
	const deletes, updates, all = features.PodUnavailableBudgetDeleteGate, features.PodUnavailableBudgetUpdateGate, features.KruisePodReadinessGate
	readiness, annotation, ask := "adding the readiness gate", "finding the PodUnavailableBudget", "asking the PodUnavailableBudget"
	for name, tc := range map[string]struct {
		gates      []featuregate.Feature
		want       []string
		operations []string
		conditions int // of the readiness gate
	}{
		"no gate":                  {nil, []string{readiness, ask}, nil, 2},
		"budgets of deletions":     {[]featuregate.Feature{deletes}, []string{readiness, annotation, ask}, []string{decision.Delete, decision.Evict}, 2},
		"budgets of updates":       {[]featuregate.Feature{updates}, []string{readiness, annotation, ask}, []string{decision.Update, decision.Resize}, 2},
		"a readiness gate for all": {[]featuregate.Feature{all}, []string{readiness, ask}, nil, 0},
		"all":                      {[]featuregate.Feature{deletes, updates, all}, []string{readiness, annotation, ask}, []string{decision.Delete, decision.Evict, decision.Update, decision.Resize}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			steps, err := Of(func(f featuregate.Feature) bool { return slices.Contains(tc.gates, f) }, Needs{})
			if err != nil {
				t.Fatal(err)
			}
			var got, operations []string
			for _, s := range steps.Mutating {
				got = append(got, s.Name)
			}
			for _, s := range steps.Validating {
				got = append(got, s.Name)
			}
			for _, m := range steps.Stored() {
				operations = append(operations, m.Operations...)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.operations, operations); diff != "" {
				t.Error(diff)
			}
			if n := len(steps.Created()[0].Conditions); n != tc.conditions {
				t.Errorf("the readiness gate has %d conditions", n)
			}
		})
	}
}
