// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
)

// A round lists the conditions anew, so the times come from the list before, and each condition comes behind those of the round.
func TestAConditionKeepsTheTimeOfTheListBefore(t *testing.T) {
	start, now := time.Unix(1_800_000_000, 0), time.Unix(1_800_000_600, 0)
	was := []kruise.WorkloadCondition{{Type: "A", Status: corev1.ConditionTrue, Reason: "R", Message: "m", LastTransitionTime: metav1.NewTime(start)}}
	for name, tc := range map[string]struct {
		next    condition.Condition
		changed bool
		since   time.Time
	}{
		"nothing changes":      {condition.Condition{Type: "A", Status: metav1.ConditionTrue, Reason: "R", Message: "m"}, false, start},
		"the message changes":  {condition.Condition{Type: "A", Status: metav1.ConditionTrue, Reason: "R", Message: "n"}, false, start},
		"the reason changes":   {condition.Condition{Type: "A", Status: metav1.ConditionTrue, Reason: "S", Message: "m"}, true, start},
		"the status changes":   {condition.Condition{Type: "A", Status: metav1.ConditionFalse, Reason: "R", Message: "m"}, true, now},
		"the condition is new": {condition.Condition{Type: "B", Status: metav1.ConditionTrue, Reason: "R", Message: "m"}, true, now},
	} {
		t.Run(name, func(t *testing.T) {
			round := []kruise.WorkloadCondition{{Type: "A", Status: corev1.ConditionUnknown}, {Type: "Z"}}
			out, changed := WithCondition(round, tc.next, was, now)
			if changed != tc.changed {
				t.Errorf("changed is %t", changed)
			}
			got := out[len(out)-1]
			want := kruise.WorkloadCondition{
				Type: kruise.WorkloadConditionType(tc.next.Type), Status: corev1.ConditionStatus(tc.next.Status), Reason: tc.next.Reason, Message: tc.next.Message,
				LastTransitionTime: metav1.NewTime(tc.since),
			}
			if got != want {
				t.Errorf("the last condition is %+v, want %+v", got, want)
			}
			if fmt.Sprint(round[0].Status, was[0].Reason, was[0].Message, was[0].Status) != "UnknownRmTrue" {
				t.Errorf("the lists that were given are now %+v and %+v", round, was)
			}
		})
	}
}
