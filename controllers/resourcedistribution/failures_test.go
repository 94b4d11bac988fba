// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/waiting"
)

// Copies are made at once. Which of them fails last says nothing: a condition that named its error would be another one in each round.
func TestTheReasonIsThatOfTheFirstNamespace(t *testing.T) {
	for _, order := range [][]string{{"bank", "shop"}, {"shop", "bank"}} {
		found := newFailures()
		for _, namespace := range order {
			found.addFailure(kruise.ResourceDistributionCreateResourceFailed, namespace, errors.New("exceeded quota of "+namespace))
		}
		s := &kruise.ResourceDistributionStatus{}
		New(reconcile.Deps{}).appendCondition(s, nil, kruise.ResourceDistributionCreateResourceFailed, found)
		if got := s.Conditions[0]; got.Reason != "exceeded quota of bank" {
			t.Errorf("in the order %v the reason is %q", order, got.Reason)
		}
	}
}

// OpenKruise has all conditions in each status, in one order, and moves their times only with their statuses.
func TestTheTimeOfAConditionIsThatOfItsStatus(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r, was := New(reconcile.Deps{Now: func() time.Time { return now }}), []kruise.ResourceDistributionCondition(nil)
	for _, step := range []struct {
		name   string
		failed string
		status corev1.ConditionStatus
		reason string
		moves  bool
	}{
		{"at first", "", corev1.ConditionFalse, kruise.ResourceDistributionSucceededReason, true},
		{"without news", "", corev1.ConditionFalse, kruise.ResourceDistributionSucceededReason, false},
		{"a namespace fails", "bank", corev1.ConditionTrue, "exceeded quota of bank", true},
		{"another fails in its place", "shop", corev1.ConditionTrue, "exceeded quota of shop", false},
		{"none fails", "", corev1.ConditionFalse, kruise.ResourceDistributionSucceededReason, true},
	} {
		now = now.Add(time.Minute)
		found := newFailures()
		if step.failed != "" {
			found.addFailure(kruise.ResourceDistributionCreateResourceFailed, step.failed, errors.New("exceeded quota of "+step.failed))
		}
		s := &kruise.ResourceDistributionStatus{}
		for _, kind := range conditionTypes() {
			r.appendCondition(s, was, kind, found)
		}
		got := s.Conditions[slices.Index(conditionTypes(), kruise.ResourceDistributionCreateResourceFailed)]
		if got.Type != kruise.ResourceDistributionCreateResourceFailed || got.Status != step.status || got.Reason != step.reason || got.LastTransitionTime.Time.Equal(now) != step.moves {
			t.Errorf("%s: got %+v at %s", step.name, got, now)
		}
		if strings.Join(got.FailedNamespaces, " ") != step.failed {
			t.Errorf("%s: the namespaces are %v", step.name, got.FailedNamespaces)
		}
		was = s.Conditions
	}
}

// kstatus reads none of the conditions, so a tool has to look at the counts.
func TestWhatKstatusSaysOfAResourceDistribution(t *testing.T) {
	for name, tc := range map[string]struct {
		observed  int64
		succeeded int32
		failed    corev1.ConditionStatus
		want      status.Status
	}{
		"all namespaces have the copy":       {2, 5, corev1.ConditionFalse, waiting.Current},
		"a namespace lacks the copy":         {2, 4, corev1.ConditionTrue, waiting.Current},
		"its controller has not seen it yet": {1, 5, corev1.ConditionFalse, waiting.InProgress},
	} {
		d := &kruise.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: "ca", Generation: 2}}
		d.Status = kruise.ResourceDistributionStatus{ObservedGeneration: tc.observed, Desired: 5, Succeeded: tc.succeeded, Failed: 5 - tc.succeeded}
		for _, kind := range conditionTypes() {
			d.Status.Conditions = append(d.Status.Conditions, kruise.ResourceDistributionCondition{Type: kind, Status: tc.failed, Reason: "Why"})
		}
		if got, message := waiting.JudgeObject(t, kruise.GroupVersion.WithKind("ResourceDistribution"), d); got != tc.want {
			t.Errorf("%s: kstatus says %s (%s), want %s", name, got, message, tc.want)
		}
	}
}
