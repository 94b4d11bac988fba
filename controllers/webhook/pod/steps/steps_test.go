// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/featuregate"

	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// What is built, and what of it each gate has the API server send.
func TestTheStepsThatAreBuilt(t *testing.T) {
	const deletes, updates, all = features.PodUnavailableBudgetDeleteGate, features.PodUnavailableBudgetUpdateGate, features.KruisePodReadinessGate
	readiness, sidecars, barriers, annotation, ask, probes, liveness := "adding the readiness gate", "adding the containers of SidecarSets", "ordering the start of containers", "finding the PodUnavailableBudget", "asking the PodUnavailableBudget", "telling the pod of its PodProbeMarkers", "taking liveness probes out of the pod"
	const back = "finding out where the pod comes back"
	for name, tc := range map[string]struct {
		gates      []featuregate.Feature
		want       []string
		operations []string
		conditions int // of the readiness gate
	}{
		"no gate":                   {nil, []string{readiness, sidecars, barriers, back, ask}, nil, 2},
		"budgets of deletions":      {[]featuregate.Feature{deletes}, []string{readiness, sidecars, barriers, annotation, back, ask}, []string{protection.Delete, protection.Evict}, 2},
		"budgets of updates":        {[]featuregate.Feature{updates}, []string{readiness, sidecars, barriers, annotation, back, ask}, []string{protection.Update, protection.Resize}, 2},
		"a readiness gate for all":  {[]featuregate.Feature{all}, []string{readiness, sidecars, barriers, back, ask}, nil, 0},
		"liveness probes":           {[]featuregate.Feature{features.EnhancedLivenessProbe}, []string{readiness, sidecars, barriers, back, liveness, ask}, nil, 2},
		"probes of serverless pods": {[]featuregate.Feature{features.EnablePodProbeMarkerOnServerless}, []string{readiness, sidecars, barriers, back, probes, ask}, nil, 2},
		"all":                       {[]featuregate.Feature{deletes, updates, all}, []string{readiness, sidecars, barriers, annotation, back, ask}, []string{protection.Delete, protection.Evict, protection.Update, protection.Resize}, 0},
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
