// SPDX-License-Identifier: Apache-2.0

package statusthrottle_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/statusthrottle"
)

func TestOnlyCounts(t *testing.T) {
	type status = kruise.CloneSetStatus
	condition := func(status corev1.ConditionStatus, reason, message string, at int64) []kruise.CloneSetCondition {
		return []kruise.CloneSetCondition{{Type: "UpdateHeld", Status: status, Reason: reason, Message: message, LastUpdateTime: metav1.Unix(at, 0)}}
	}
	for name, tc := range map[string]struct {
		a, b status
		want bool
	}{
		"nothing differs":                  {status{Replicas: 3}, status{Replicas: 3}, true},
		"counts":                           {status{Replicas: 3}, status{Replicas: 4, ReadyReplicas: 1}, true},
		"the generation":                   {status{ObservedGeneration: 1}, status{ObservedGeneration: 2}, false},
		"a revision":                       {status{UpdateRevision: "a"}, status{UpdateRevision: "b"}, false},
		"a new condition":                  {status{}, status{Conditions: condition("True", "Freeze", "", 1)}, false},
		"the status of a condition":        {status{Conditions: condition("True", "Freeze", "", 1)}, status{Conditions: condition("False", "Freeze", "", 1)}, false},
		"the reason of a condition":        {status{Conditions: condition("True", "Freeze", "", 1)}, status{Conditions: condition("True", "Other", "", 1)}, false},
		"a number in a message, and times": {status{Conditions: condition("True", "Freeze", "3 pods", 1)}, status{Conditions: condition("True", "Freeze", "2 pods", 2)}, true},
		"a summary in words": {
			status{ReadyReplicas: 1, Conditions: []kruise.CloneSetCondition{{Type: kruise.ConditionReconciling, Status: "True"}, {Type: kruise.ConditionReady, Status: "False"}}},
			status{ReadyReplicas: 3, Conditions: []kruise.CloneSetCondition{{Type: kruise.ConditionReady, Status: "True"}}}, true,
		},
	} {
		if got := statusthrottle.OnlyCounts(&tc.a, &tc.b); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestCountsOfSubsets(t *testing.T) {
	type status = kruise.WorkloadSpreadStatus
	subset := func(replicas int32, conditions ...metav1.Condition) status {
		s := []kruise.WorkloadSpreadSubsetStatus{{Name: "a", Replicas: replicas, MissingReplicas: 9 - replicas, Conditions: conditions}}
		return status{SubsetStatuses: s, VersionedSubsetStatuses: map[string][]kruise.WorkloadSpreadSubsetStatus{"v": s}}
	}
	creating := subset(1)
	creating.VersionedSubsetStatuses["v"][0].CreatingPods = map[string]metav1.Time{"web-1": metav1.Unix(1, 0)}
	full := metav1.Condition{Type: "Schedulable", Status: metav1.ConditionFalse}
	for name, tc := range map[string]struct {
		a, b status
		want bool
	}{
		"counts in subsets":        {subset(1), subset(2), true},
		"pods that are being made": {subset(1), creating, true},
		"a condition of a subset":  {subset(1), subset(1, full), false},
		"another subset":           {subset(1), status{SubsetStatuses: []kruise.WorkloadSpreadSubsetStatus{{Name: "b"}}}, false},
	} {
		if got := statusthrottle.OnlyCounts(&tc.a, &tc.b, "creatingPods"); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	a, b := subset(1), creating
	if statusthrottle.OnlyCounts(&a, &b) {
		t.Error("pods that are being made do not count unless they are named")
	}
}

func TestWait(t *testing.T) {
	was, counts, held := kruise.CloneSetStatus{Replicas: 1}, kruise.CloneSetStatus{Replicas: 2}, kruise.CloneSetStatus{UpdateRevision: "b"}
	for name, tc := range map[string]struct {
		next        kruise.CloneSetStatus
		since, want time.Duration
	}{
		"counts, soon after the last write": {counts, time.Second, 2 * time.Second},
		"counts, long after it":             {counts, 3 * time.Second, 0},
		"more than counts":                  {held, time.Second, 0},
	} {
		if got := statusthrottle.WriteDelay(&was, &tc.next, 3*time.Second, tc.since); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
