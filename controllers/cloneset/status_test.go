// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

func TestProgress(t *testing.T) {
	start := time.Unix(100_000, 0)
	former := func(reason string, age time.Duration) *kruise.CloneSetCondition {
		status := corev1.ConditionTrue
		if reason == kruise.CloneSetProgressDeadlineExceededReason {
			status = corev1.ConditionFalse
		}
		return &kruise.CloneSetCondition{Type: kruise.CloneSetConditionProgressing, Status: status, Reason: reason, LastUpdateTime: metav1.NewTime(start.Add(-age))}
	}
	available := kruise.CloneSetStatus{Replicas: 10, UpdatedReplicas: 10, UpdatedAvailableReplicas: 10, ExpectedUpdatedReplicas: 10, CurrentRevision: "b", UpdateRevision: "b"}
	rolling := kruise.CloneSetStatus{Replicas: 10, UpdatedReplicas: 4, UpdatedAvailableReplicas: 3, ExpectedUpdatedReplicas: 10, CurrentRevision: "a", UpdateRevision: "b"}
	partitioned := rolling
	partitioned.ExpectedUpdatedReplicas = 3
	short := available
	short.UpdatedAvailableReplicas = 9
	surplus := available // a hook keeps one that is to go, or the surge is not gone yet
	surplus.Replicas, surplus.UpdatedReplicas, surplus.UpdatedAvailableReplicas = 11, 11, 10
	missing := partitioned
	missing.Replicas, missing.UpdatedReplicas = 3, 3
	tests := map[string]struct {
		status kruise.CloneSetStatus
		old    *kruise.CloneSetCondition
		paused bool
		reason string
		again  time.Duration
	}{
		"all pods are updated and available":                        {available, nil, false, "CloneSetAvailable", 0},
		"one of them is not available":                              {short, nil, false, "CloneSetUpdated", 61 * time.Second},
		"a rollout has just begun":                                  {rolling, former("CloneSetAvailable", time.Hour), false, "CloneSetUpdated", 61 * time.Second},
		"a rollout goes on":                                         {rolling, former("CloneSetUpdated", 20*time.Second), false, "CloneSetUpdated", 41 * time.Second},
		"a rollout takes as long as it may":                         {rolling, former("CloneSetUpdated", 60*time.Second), false, "CloneSetUpdated", time.Second},
		"a rollout takes too long":                                  {rolling, former("CloneSetUpdated", 61*time.Second), false, "ProgressDeadlineExceeded", 0},
		"it stays late":                                             {rolling, former("ProgressDeadlineExceeded", time.Second), false, "ProgressDeadlineExceeded", 0},
		"until it is done":                                          {available, former("ProgressDeadlineExceeded", time.Second), false, "CloneSetAvailable", 0},
		"it is paused, late or not":                                 {rolling, former("ProgressDeadlineExceeded", time.Hour), true, "CloneSetPaused", 0},
		"paused when done, it is available":                         {available, nil, true, "CloneSetAvailable", 0},
		"after a long pause it is not late at once":                 {rolling, former("CloneSetPaused", time.Hour), false, "CloneSetUpdated", 61 * time.Second},
		"as many are updated and available as the partition allows": {partitioned, former("CloneSetUpdated", time.Hour), false, "ProgressPartitionAvailable", 0},
		"the same while pods that the partition keeps are missing":  {missing, former("CloneSetUpdated", time.Second), false, "ProgressPartitionAvailable", 0},
		"one pod too many without a partition":                      {surplus, former("CloneSetUpdated", 20*time.Second), false, "CloneSetUpdated", 41 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := &rollout.Facts{
				Now: start, Workload: &kruise.CloneSet{Spec: kruise.CloneSetSpec{ProgressDeadlineSeconds: ptr.To(int32(60))}},
				Spec: rollout.Spec{Replicas: 10, Strategy: points.Strategy{Paused: tc.paused}},
			}
			s := tc.status
			if tc.old != nil {
				s.Conditions = []kruise.CloneSetCondition{*tc.old}
			}
			again := updateProgress(f, &s)
			c := findCondition(&s, kruise.CloneSetConditionProgressing)
			if c == nil || c.Reason != tc.reason || again != tc.again || len(s.Conditions) != 1 {
				t.Fatalf("%+v, again in %s; want %s, %s", s.Conditions, again, tc.reason, tc.again)
			}
			if want := tc.reason != "ProgressDeadlineExceeded"; (c.Status == corev1.ConditionTrue) != want {
				t.Errorf("the status is %s", c.Status)
			}
			if want := "CloneSet has been paused due to partition ready"; tc.reason == "ProgressPartitionAvailable" && c.Message != want {
				t.Errorf("the message is %q, want %q", c.Message, want)
			}
		})
	}
	for name, deadline := range map[string]*int32{"none": nil, "the largest": ptr.To(int32(math.MaxInt32))} {
		f := &rollout.Facts{Now: start, Workload: &kruise.CloneSet{Spec: kruise.CloneSetSpec{ProgressDeadlineSeconds: deadline}}}
		s := kruise.CloneSetStatus{Conditions: []kruise.CloneSetCondition{*former("CloneSetUpdated", 0), {Type: kruise.CloneSetConditionFailedScale}}}
		if updateProgress(f, &s); len(s.Conditions) != 1 || s.Conditions[0].Type != kruise.CloneSetConditionFailedScale {
			t.Errorf("with %s as deadline the conditions are %+v", name, s.Conditions)
		}
	}
}

// OpenKruise moves lastUpdateTime when the status or the reason changes, and an event reports that (CS-21).
func TestTimesOfTheConditionsOfACloneSet(t *testing.T) {
	at := func(s int64) metav1.Time { return metav1.NewTime(time.Unix(s, 0)) }
	s := &kruise.CloneSetStatus{}
	step := func(now int64, status corev1.ConditionStatus, reason, message string, changed bool, update, transition int64) {
		t.Helper()
		next := condition.Condition{Type: "X", Status: metav1.ConditionStatus(status), Reason: reason, Message: message}
		if got := condition.SetCondition(s, next, 1, at(now)).IsNews(); got != changed {
			t.Errorf("at %d: changed %v", now, got)
		}
		c := kruise.CloneSetCondition{Type: "X", Status: status, Reason: reason, Message: message, LastUpdateTime: at(update), LastTransitionTime: at(transition)}
		if diff := cmp.Diff([]kruise.CloneSetCondition{c}, s.Conditions); diff != "" {
			t.Errorf("at %d: %s", now, diff)
		}
	}
	step(1, "True", "A", "one", true, 1, 1)
	step(2, "True", "A", "one", false, 1, 1)
	step(3, "True", "A", "two", false, 1, 1)
	step(4, "True", "B", "two", true, 4, 1)
	step(5, "False", "B", "two", true, 5, 5)
}
