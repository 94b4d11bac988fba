// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// A pod that finds no node is deleted only where nothing holds the rollout of its workload.
func TestPodsThatFindNoNodeAreHeld(t *testing.T) {
	for name, tc := range map[string]struct {
		rule    string
		deleted bool
	}{
		"nothing holds":              {"", true},
		"the CloneSet is held":       {"hold contains {\"reason\": \"Freeze\", \"message\": \"m\"} if {\n\tinput.workload.kind == \"CloneSet\"\n\tinput.workload.labels.tier == \"gold\"\n}", false},
		"another workload is held":   {"hold contains {\"reason\": \"Freeze\", \"message\": \"m\"} if input.workload.name == \"other\"", true},
		"a rule of pods holds":       {"hold contains {\"reason\": \"One\", \"message\": \"m\", \"pod\": pod.name} if some pod in input.pods", false},
		"a rule fails":               {"hold contains {\"reason\": to_number(\"x\"), \"message\": \"m\"}", false},
		"a rule of pods alone fails": {"hold contains {\"reason\": to_number(\"x\"), \"message\": \"m\", \"pod\": pod.name} if some pod in input.pods", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(s *kruise.WorkloadSpread) {
				s.Spec.ScheduleStrategy = kruise.WorkloadSpreadScheduleStrategy{
					Type: kruise.AdaptiveWorkloadSpreadScheduleStrategyType, Adaptive: &kruise.AdaptiveWorkloadSpreadStrategy{RescheduleCriticalSeconds: ptr.To[int32](10)},
				}
			})
			set := &kruise.CloneSet{}
			if err := w.api.Get(t.Context(), w.key, set); err != nil {
				t.Fatal(err)
			}
			set.Labels = map[string]string{"tier": "gold"}
			if err := w.api.Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			activate := func(rule string) {
				t.Helper()
				var set bundle.Set
				if rule != "" {
					b, err := bundle.FromFiles("rules", map[string]string{"x.rego": "package extend.rollout.x\n\n" + rule})
					if err != nil {
						t.Fatal(err)
					}
					set = bundle.Set{b}
				}
				if err := w.engine.ActivateBundles(t.Context(), set); err != nil {
					t.Fatal(err)
				}
			}
			activate(tc.rule)
			pod := w.create(1, false)[0]
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
			if err := w.api.Status().Update(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			w.reconcile()
			w.now = w.now.Add(11 * time.Second)
			w.writes = nil
			w.told()
			after := w.reconcile()
			if got := slices.Contains(w.writes, "delete "+pod.Name); got != tc.deleted {
				t.Fatalf("deleted is %t, want %t", got, tc.deleted)
			}
			if tc.deleted {
				return
			}
			told := strings.Join(w.told(), "\n")
			if after == 0 || after > heldAgain || strings.Count(told, kruise.WorkloadSpreadDeletePodHeldReason) != 1 {
				t.Errorf("it is looked at again after %s, told was %q", after, told)
			}
			w.reconcile()
			if told := w.told(); len(told) > 0 {
				t.Errorf("the same again is told: %q", told)
			}
			activate("")
			w.reconcile()
			if !slices.Contains(w.writes, "delete "+pod.Name) {
				t.Error("it is not deleted when nothing holds it")
			}
		})
	}
}
