// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/test/waiting"
)

func TestWhatKstatusSaysOfAWorkloadSpread(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	placing := func(to metav1.ConditionStatus, reason string) func(*kruise.WorkloadSpreadStatus) {
		return func(s *kruise.WorkloadSpreadStatus) {
			condition.SetCondition(s, condition.Condition{Type: kruise.WorkloadSpreadPlacing, Status: to, Reason: reason, Message: "why"}, 2, metav1.NewTime(now))
		}
	}
	for name, tc := range map[string]struct {
		edit   func(*kruise.WorkloadSpreadStatus)
		want   status.Status
		reason string
	}{
		"pods are placed, and always were":   {func(*kruise.WorkloadSpreadStatus) {}, waiting.Current, kruise.WorkloadSpreadPlacingReason},
		"pods are placed again":              {placing(metav1.ConditionTrue, kruise.WorkloadSpreadPlacingReason), waiting.Current, kruise.WorkloadSpreadPlacingReason},
		"its workload does not exist yet":    {placing(metav1.ConditionFalse, kruise.WorkloadSpreadTargetNotFoundReason), waiting.Current, kruise.WorkloadSpreadTargetNotFoundReason},
		"all subsets are full":               {placing(metav1.ConditionFalse, kruise.WorkloadSpreadSubsetsFullReason), waiting.InProgress, kruise.WorkloadSpreadSubsetsFullReason},
		"pods are of an unknown subset":      {placing(metav1.ConditionFalse, kruise.WorkloadSpreadUnknownSubsetReason), waiting.InProgress, kruise.WorkloadSpreadUnknownSubsetReason},
		"a subset selects no node":           {placing(metav1.ConditionFalse, kruise.WorkloadSpreadNoNodesReason), waiting.InProgress, kruise.WorkloadSpreadNoNodesReason},
		"pods find no node":                  {placing(metav1.ConditionFalse, kruise.WorkloadSpreadPodUnschedulableReason), waiting.InProgress, kruise.WorkloadSpreadPodUnschedulableReason},
		"its controller has not seen it yet": {func(s *kruise.WorkloadSpreadStatus) { s.ObservedGeneration = 1 }, waiting.InProgress, kruise.WorkloadSpreadPlacingReason},
	} {
		round := &reconcileRound{w: &kruise.WorkloadSpread{}, status: kruise.WorkloadSpreadStatus{ObservedGeneration: 2}}
		tc.edit(&round.status)
		kstatus.SetConditions(&round.status, round.summarizePlacing(), 2, now)
		got, message := waiting.JudgeObject(t, kruise.GroupVersion.WithKind("WorkloadSpread"), &kruise.WorkloadSpread{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2}, Status: round.status,
		})
		ready, _ := condition.FindCondition(&round.status, kruise.ConditionReady)
		if got != tc.want || ready.Reason != tc.reason {
			t.Errorf("%s: kstatus says %s (%s), and Ready is %+v; want %s, %s", name, got, message, ready, tc.want, tc.reason)
		}
	}
}
