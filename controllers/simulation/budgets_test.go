// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/simulation"
)

// budgeted has a budget of all its pods.
func budgeted(f simulation.ClusterState, unavailable intstr.IntOrString) simulation.ClusterState {
	b := &policy.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Generation: 1}}
	b.Spec = policy.PodUnavailableBudgetSpec{Selector: f.Workload.(*kruise.CloneSet).Spec.Selector, MaxUnavailable: &unavailable}
	f.Budgets = []*policy.PodUnavailableBudget{b}
	return f
}

// Whatever policies answer about budgets, no budget is overdrawn unless a policy
// exempts a pod from it.
func TestBudgetsUnderPoliciesThatAnswerNonsense(t *testing.T) {
	gates, err := features.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := gates.Set("PodUnavailableBudgetUpdateGate=true"); err != nil {
		t.Fatal(err)
	}
	grown := func(edit func(*kruise.CloneSetSpec)) simulation.ClusterState {
		return budgeted(fleet(t, edit), intstr.FromInt32(1))
	}
	hook := func(s *kruise.CloneSetSpec) {
		s.Template.Labels = map[string]string{"app": "web", "hooked": "yes"}
		h := &kruise.LifecycleHook{LabelsHandler: map[string]string{"hooked": "yes"}}
		s.Lifecycle = &kruise.Lifecycle{InPlaceUpdate: h, PreDelete: h}
	}
	recreate := func(s *kruise.CloneSetSpec) {
		s.UpdateStrategy.RollingUpdate.PodUpdatePolicy = kruise.RecreatePodUpdatePolicyType
	}
	fleets := map[string]simulation.ClusterState{
		"in place":              grown(nil),
		"recreated":             grown(recreate),
		"with hooks, in place":  grown(hook),
		"with hooks, recreated": grown(func(s *kruise.CloneSetSpec) { hook(s); recreate(s) }),
		"with surge": grown(func(s *kruise.CloneSetSpec) {
			recreate(s)
			s.UpdateStrategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(2))
		}),
	}
	say := func(answer string) string {
		return "package override.protection\n\nimport future.keywords.not\n\n# METADATA\n# title: Nonsense\n# entrypoint: true\n# labels:\n#   id: x.nonsense\nbudget := " + answer + "\n"
	}
	for i, tc := range []struct{ name, rego, how string }{
		{"none at all", "", simulation.Done},
		{"all are allowed", say(`{"allow": true, "reasons": [{"rule": "x", "reason": "Yes", "message": "Yes."}]}`), simulation.Done},
		{"all are allowed and recorded elsewhere", say(`{"allow": true, "record": "unavailablePods", "take": false, "reasons": [{"rule": "x", "reason": "Yes", "message": "Yes."}]}`), simulation.Done},
		{"an exemption of this form has no effect", "package extend.protection.x\n\nexempt contains \"all\"\n", simulation.Done},
		{"all are exempt", "package extend.protection.x\n\nexempt contains {\"reason\": \"Hurry\", \"message\": \"Now.\"}\n", simulation.Done},
		{"none is allowed", say(`{"allow": false, "reasons": [{"rule": "x", "reason": "No", "message": "No."}]}`), simulation.Stuck},
		{"what is no answer", say(`"yes"`), simulation.Stuck},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, name := range shapesFor(i, fleets) {
				r := run(t, fleets[name], tc.rego, simulation.WithGates(gates), simulation.WithPatience(time.Hour))
				if len(r.Violations) > 0 || r.End.How != tc.how {
					t.Errorf("%s: want it %s and no promise broken, got %s", name, tc.how, story(r))
				}
			}
		})
	}
}
