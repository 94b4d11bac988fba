// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
)

// Progressing stays late until the CloneSet is available, as in OpenKruise. A later revision is stalled only if it is late itself, and one
// that was held only if it is late after the hold.
func TestEachRevisionHasTheDeadlineToItself(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	set := &kruise.CloneSet{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Spec: kruise.CloneSetSpec{Replicas: ptr.To(int32(3)), ProgressDeadlineSeconds: ptr.To(int32(600))}}
	hold := metav1.ConditionStatus("")
	round := func(after time.Duration, revision, want string, again time.Duration) {
		t.Helper()
		now := start.Add(after)
		s := kruise.CloneSetStatus{
			ObservedGeneration: 1, Replicas: 3, AvailableReplicas: 2, UpdatedReplicas: 1, ExpectedUpdatedReplicas: 3, UpdateRevision: revision,
			Conditions: append([]kruise.CloneSetCondition(nil), set.Status.Conditions...),
		}
		late := condition.Condition{Type: string(kruise.CloneSetConditionProgressing), Status: metav1.ConditionFalse, Reason: kruise.CloneSetProgressDeadlineExceededReason, Message: revision + " is late"}
		condition.SetCondition(&s, late, 1, metav1.NewTime(now))
		if hold != "" {
			condition.SetCondition(&s, condition.Condition{Type: kruise.UpdateHeld, Status: hold, Reason: "Freeze", Message: "frozen"}, 1, metav1.NewTime(now))
		}
		got := summarizeProgress(set, &s, now)
		has := ""
		for _, kind := range []kruise.CloneSetConditionType{kruise.ConditionReconciling, kruise.ConditionStalled} {
			if c := findCondition(&s, kind); c != nil {
				has += string(kind)
			}
		}
		if has != want || got != again {
			t.Errorf("after %s the CloneSet is %s, and looked at again after %s; want %s, %s", after, has, got, want, again)
		}
		set.Status = s
	}
	round(0, "a", kruise.ConditionStalled, 0)
	round(time.Minute, "a", kruise.ConditionStalled, 0)
	round(2*time.Minute, "b", kruise.ConditionReconciling, 601*time.Second)
	round(3*time.Minute, "b", kruise.ConditionReconciling, 541*time.Second)
	round(10*time.Minute, "c", kruise.ConditionReconciling, 601*time.Second)
	round(20*time.Minute, "c", kruise.ConditionReconciling, time.Second)
	round(20*time.Minute+time.Second, "c", kruise.ConditionStalled, 0)
	hold = metav1.ConditionTrue
	round(time.Hour, "c", kruise.ConditionReconciling, 0)
	round(2*time.Hour, "c", kruise.ConditionReconciling, 0)
	hold = metav1.ConditionFalse
	round(3*time.Hour, "c", kruise.ConditionReconciling, 601*time.Second)
	round(3*time.Hour+601*time.Second, "c", kruise.ConditionStalled, 0)
}
