// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// The time of the condition of an update is also that of the revision, as in OpenKruise: how long an update takes is measured from it.
func TestWhenTheTimeOfAConditionMoves(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	for name, tc := range map[string]struct {
		kind   kruise.UnitedDeploymentConditionType
		status metav1.ConditionStatus
		text   string
		moves  bool
	}{
		"an update goes on":                        {kruise.UnitedDeploymentUpdated, metav1.ConditionFalse, "updating to revision b", false},
		"an update has another revision":           {kruise.UnitedDeploymentUpdated, metav1.ConditionFalse, "updating to revision c", true},
		"an update ends":                           {kruise.UnitedDeploymentUpdated, metav1.ConditionTrue, "updated to revision b", true},
		"a failure has another message":            {kruise.UnitedDeploymentSubsetFailure, metav1.ConditionFalse, "subset b: refused", false},
		"a failure ends":                           {kruise.UnitedDeploymentSubsetFailure, metav1.ConditionTrue, "", true},
		"a condition with neither reason nor text": {"Other", metav1.ConditionFalse, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			now := start.Add(time.Minute)
			r := &reconcileRound{d: &kruise.UnitedDeployment{}, now: now, status: kruise.UnitedDeploymentStatus{Conditions: []kruise.UnitedDeploymentCondition{
				{Type: kruise.UnitedDeploymentUpdated, Status: corev1.ConditionFalse, Message: "updating to revision b", LastTransitionTime: metav1.NewTime(start)},
				{Type: kruise.UnitedDeploymentSubsetFailure, Status: corev1.ConditionFalse, Message: "subset a: refused", LastTransitionTime: metav1.NewTime(start)},
			}}}
			r.setCondition(tc.kind, tc.status, "", tc.text)
			all := r.status.Conditions
			if all[0].Type != kruise.UnitedDeploymentUpdated || all[1].Type != kruise.UnitedDeploymentSubsetFailure {
				t.Errorf("the order is another: %+v", all)
			}
			for _, c := range all {
				if c.Type == tc.kind && (c.Status != corev1.ConditionStatus(tc.status) || c.Message != tc.text || c.LastTransitionTime.Time.Equal(now) != tc.moves) {
					t.Errorf("got %+v", c)
				}
			}
		})
	}
}

// A subset that stays without room keeps its time, and one that stays with room keeps all of its condition.
func TestMarkingASubset(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	for name, tc := range map[string]struct {
		was    corev1.ConditionStatus
		status metav1.ConditionStatus
		reason string
		moves  bool
	}{
		"it is new":             {"", metav1.ConditionFalse, "Now", true},
		"it stays without room": {corev1.ConditionFalse, metav1.ConditionFalse, "Now", false},
		"it has room again":     {corev1.ConditionFalse, metav1.ConditionTrue, "Now", true},
		"it stays with room":    {corev1.ConditionTrue, metav1.ConditionTrue, "Then", false},
		"it has no more room":   {corev1.ConditionTrue, metav1.ConditionFalse, "Now", true},
	} {
		t.Run(name, func(t *testing.T) {
			was := kruise.UnitedDeploymentSubsetCondition{
				Type: kruise.UnitedDeploymentSubsetSchedulable, Status: tc.was, Reason: "Then", LastTransitionTime: metav1.NewTime(start),
			}
			p := &subsetState{}
			if tc.was != "" {
				p.condition = &was
			}
			r := &reconcileRound{d: &kruise.UnitedDeployment{}, now: start.Add(time.Minute)}
			r.markSubset(p, tc.status, "Now", "text")
			if c := p.condition; c.Status != corev1.ConditionStatus(tc.status) || c.Reason != tc.reason || c.LastTransitionTime.Time.Equal(r.now) != tc.moves {
				t.Errorf("got %+v", c)
			}
			if was.Reason != "Then" || was.Status != tc.was {
				t.Errorf("the condition that was read is now %+v", was)
			}
		})
	}
}
