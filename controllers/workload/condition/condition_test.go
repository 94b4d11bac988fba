// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/message"
)

// statuses are one of each Go type of conditions.
func statuses() []any {
	return []any{
		&kruise.CloneSetStatus{}, &kruise.StatefulSetStatus{}, &kruise.BroadcastJobStatus{}, &kruise.UnitedDeploymentStatus{},
		&kruise.SidecarSetStatus{}, &kruise.ResourceDistributionStatus{}, &policy.PolicyBundleStatus{},
	}
}

// readFields are the fields of the conditions of a status as a client sees them.
func readFields(t *testing.T, status any) []map[string]any {
	t.Helper()
	data, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	var out struct{ Conditions []map[string]any }
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out.Conditions
}

func TestConditionsOfEachKindOfStatus(t *testing.T) {
	at := func(minute int) metav1.Time { return metav1.Unix(1_800_000_000+60*int64(minute), 0) }
	textAt := func(minute int) string { return at(minute).UTC().Format("2006-01-02T15:04:05Z") }
	for _, status := range statuses() {
		t.Run(fmt.Sprintf("%T", status), func(t *testing.T) {
			set := func(minute int, to metav1.ConditionStatus, reason, text string, changes bool) map[string]any {
				t.Helper()
				c := condition.Condition{Type: "A", Status: to, Reason: reason, Message: text}
				if got := condition.SetCondition(status, c, 3, at(minute)).IsAny(); got != changes {
					t.Errorf("minute %d: changed is %t", minute, got)
				}
				all := readFields(t, status)
				if len(all) != 1 {
					t.Fatalf("the conditions are %v", all)
				}
				return all[0]
			}
			set(0, metav1.ConditionTrue, "Full", "2 of 3", true)
			set(1, metav1.ConditionTrue, "Full", "2 of 3", false)
			got := set(2, metav1.ConditionTrue, "Full", "1 of 3", true)
			if text := fmt.Sprint(got["message"], got["reason"]); !strings.Contains(text, "1 of 3") {
				t.Errorf("got %v", got)
			}
			if got["lastTransitionTime"] != textAt(0) {
				t.Errorf("another message moves the time of the last transition: %v", got)
			}
			if probed := got["lastProbeTime"]; probed != nil && probed != textAt(2) {
				t.Errorf("got %v", got)
			}
			if updated := got["lastUpdateTime"]; updated != nil && updated != textAt(0) {
				t.Errorf("got %v", got)
			}
			if seen := got["observedGeneration"]; seen != nil && seen != 3.0 {
				t.Errorf("got %v", got)
			}
			if got := set(3, metav1.ConditionFalse, "Empty", "0 of 3", true); got["lastTransitionTime"] != textAt(3) || got["status"] != "False" {
				t.Errorf("got %v", got)
			}
			if got := set(4, metav1.ConditionFalse, "Empty", strings.Repeat("x", 1<<20), true); len(fmt.Sprint(got)) > message.MostBytes+500 {
				t.Error("the text is not bounded")
			}

			condition.SetCondition(status, condition.Condition{Type: "B", Status: metav1.ConditionTrue, Reason: "Two", Message: "two"}, 3, at(5))
			for _, summary := range []string{kruise.ConditionReady, kruise.ConditionReconciling} {
				condition.SetCondition(status, condition.Condition{Type: summary, Status: metav1.ConditionTrue, Reason: "R", Message: "m"}, 3, at(6))
			}
			condition.SetCondition(status, condition.Condition{Type: "C", Status: metav1.ConditionTrue, Reason: "Three", Message: "three"}, 3, at(7))
			condition.PutSummaryLast(status)
			var order []string
			for _, c := range readFields(t, status) {
				order = append(order, fmt.Sprint(c["type"]))
			}
			if got := strings.Join(order, " "); got != "A B C Reconciling Ready" {
				t.Errorf("the order is %s", got)
			}
			condition.RemoveConditions(status, "C", kruise.ConditionReady, kruise.ConditionReconciling)
			if condition.RemoveConditions(status, "C") || !condition.RemoveConditions(status, "A", "C") || condition.RemoveConditions(status, "A") {
				t.Error("RemoveConditions does not say what it removed")
			}
			if all := readFields(t, status); len(all) != 1 || all[0]["type"] != "B" {
				t.Errorf("got %v", all)
			}
		})
	}
}

func TestAStatusWithoutConditions(t *testing.T) {
	for _, status := range []any{&struct{}{}, &struct{ Conditions []string }{}, struct{}{}, nil} {
		if condition.SetCondition(status, condition.Condition{Type: "A", Status: metav1.ConditionTrue, Reason: "R"}, 1, metav1.Now()).IsAny() || condition.RemoveConditions(status, "A") {
			t.Errorf("%T has conditions", status)
		}
		condition.PutSummaryLast(status)
	}
}

// A list is set as a status is. Events are recorded for news only.
func TestConditionsOfAList(t *testing.T) {
	list, now := []metav1.Condition{{Type: "A", Status: metav1.ConditionTrue, Reason: "R", Message: "m", ObservedGeneration: 1}}, metav1.Unix(1_800_000_000, 0)
	for _, step := range []struct {
		name       string
		next       condition.Condition
		generation int64
		news, any  bool
	}{
		{"nothing changes", condition.Condition{Type: "A", Status: metav1.ConditionTrue, Reason: "R", Message: "m"}, 1, false, false},
		{"another generation", condition.Condition{Type: "A", Status: metav1.ConditionTrue, Reason: "R", Message: "m"}, 2, false, true},
		{"another message", condition.Condition{Type: "A", Status: metav1.ConditionTrue, Reason: "R", Message: "n"}, 2, false, true},
		{"another reason", condition.Condition{Type: "A", Status: metav1.ConditionTrue, Reason: "S", Message: "n"}, 2, true, true},
		{"another status", condition.Condition{Type: "A", Status: metav1.ConditionFalse, Reason: "S", Message: "n"}, 2, true, true},
		{"a condition with only a type", condition.Condition{Type: "B"}, 0, true, true},
	} {
		if got := condition.SetCondition(&list, step.next, step.generation, now); got.IsNews() != step.news || got.IsAny() != step.any {
			t.Errorf("%s: got %+v", step.name, got)
		}
	}
	if len(list) != 2 || list[0].LastTransitionTime != now || list[1].LastTransitionTime != now || list[0].ObservedGeneration != 2 {
		t.Errorf("got %+v", list)
	}
	if !condition.HasCondition(&list, "B") || !condition.RemoveConditions(&list, "A", "B") || list != nil {
		t.Errorf("got %+v", list)
	}
}

// A status that is a shallow copy does not change with the one that was copied.
func TestRemovingLeavesTheListThatWasRead(t *testing.T) {
	read := kruise.CloneSetStatus{Conditions: []kruise.CloneSetCondition{{Type: "A"}, {Type: "B"}}}
	next := read
	condition.RemoveConditions(&next, "A")
	if len(read.Conditions) != 2 || read.Conditions[0].Type != "A" || read.Conditions[1].Type != "B" {
		t.Errorf("got %v", read.Conditions)
	}
}
