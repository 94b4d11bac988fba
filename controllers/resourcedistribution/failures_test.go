// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
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
