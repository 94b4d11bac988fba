// SPDX-License-Identifier: Apache-2.0

package jobcondition_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/jobcondition"
)

// OpenKruise moves lastProbeTime of a job with each change, and events report a new reason only.
func TestTimesOfTheConditionsOfAJob(t *testing.T) {
	at := func(s int64) metav1.Time { return metav1.NewTime(time.Unix(s, 0)) }
	list := []kruise.JobCondition{{Type: "First", Status: corev1.ConditionTrue}, {Type: "Last", Status: corev1.ConditionTrue}}
	for _, step := range []struct {
		name, reason, text string
		now                int64
		fresh              bool
		probed             int64
	}{
		{"the condition is new", "A", "one", 1, true, 1},
		{"nothing changes", "A", "one", 2, false, 1},
		{"another message", "A", "two", 3, false, 3},
		{"another reason", "B", "two", 4, true, 4},
	} {
		if got := jobcondition.SetTrue(&list, "X", step.reason, step.text, at(step.now)); got != step.fresh {
			t.Errorf("%s: fresh is %t", step.name, got)
		}
		want := kruise.JobCondition{Type: "X", Status: corev1.ConditionTrue, Reason: step.reason, Message: step.text, LastProbeTime: at(step.probed), LastTransitionTime: at(1)}
		if len(list) != 3 || list[2] != want {
			t.Errorf("%s: the conditions are %+v, want the last to be %+v", step.name, list, want)
		}
	}
	if jobcondition.SetTrue(&list, "First", "", "", at(5)) || list[0] != (kruise.JobCondition{Type: "First", Status: corev1.ConditionTrue}) {
		t.Errorf("a condition that stays is %+v", list[0])
	}
	var empty []kruise.JobCondition
	if !jobcondition.SetTrue(&empty, "Bare", "", "", at(6)) || empty[0].LastProbeTime != at(6) || empty[0].LastTransitionTime != at(6) {
		t.Errorf("a condition without reason and message is %+v", empty)
	}
}
