// SPDX-License-Identifier: Apache-2.0

package podunavailablebudget

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

func TestSelectorsOverlap(t *testing.T) {
	const in, notIn, exists, not = metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist
	with := func(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: operator, Values: values}}}
	}
	labels := func(pairs ...string) *metav1.LabelSelector {
		out := &metav1.LabelSelector{MatchLabels: map[string]string{}}
		for i := 0; i < len(pairs); i += 2 {
			out.MatchLabels[pairs[i]] = pairs[i+1]
		}
		return out
	}
	for _, tc := range []struct {
		name string
		a, b *metav1.LabelSelector
		want bool
	}{
		{"no selector overlaps none", nil, labels("app", "web"), false},
		{"an empty one is no selector", labels(), labels(), false},
		{"the same label", labels("app", "web"), labels("app", "web"), true},
		{"another value", labels("app", "web"), labels("app", "db"), false},
		{"another key", labels("app", "web"), labels("tier", "web"), false},
		{"one key more", labels("app", "web"), labels("app", "web", "tier", "x"), false},
		{"two keys, one of another value", labels("app", "web", "tier", "x"), labels("app", "web", "tier", "y"), false},
		{"lists that share a value", with(in, "a", "b"), with(in, "b", "c"), true},
		{"lists that share none", with(in, "a"), with(in, "b"), false},
		{"a list that is excluded in part", with(in, "a", "b"), with(notIn, "a"), true},
		{"a list that is excluded", with(in, "a", "b"), with(notIn, "b", "a"), false},
		{"a list and any value", with(in, "a"), with(exists), true},
		{"a list and no value", with(in, "a"), with(not), false},
		{"any value twice", with(exists), with(exists), true},
		{"any value but some", with(exists), with(notIn, "a"), true},
		{"any value and none", with(exists), with(not), false},
		{"two exclusions", with(notIn, "a"), with(notIn, "b"), true},
		{"an exclusion and no value", with(notIn, "a"), with(not), true},
		{"no value twice", with(not), with(not), true},
		{"all requirements of a key must agree", &metav1.LabelSelector{
			MatchLabels: map[string]string{"app": "web"}, MatchExpressions: with(notIn, "x").MatchExpressions,
		}, with(in, "x", "y"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, turned := looselyOverlap(tc.a, tc.b), looselyOverlap(tc.b, tc.a); got != tc.want || turned != tc.want {
				t.Errorf("got %t, and %t the other way round", got, turned)
			}
		})
	}
}

func TestTargetsAreTheSameInAnyVersion(t *testing.T) {
	target := &v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	for _, tc := range []struct {
		name  string
		other *v1beta1.TargetReference
		want  bool
	}{
		{"none", nil, false},
		{"itself", target, true},
		{"in another version", &v1beta1.TargetReference{APIVersion: "apps/v1beta2", Kind: "Deployment", Name: "web"}, true},
		{"of another group", &v1beta1.TargetReference{APIVersion: "apps.kruise.io/v1", Kind: "Deployment", Name: "web"}, false},
		{"of what is no version", &v1beta1.TargetReference{APIVersion: "apps/v1/x", Kind: "Deployment", Name: "web"}, false},
		{"of another kind", &v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web"}, false},
		{"of another name", &v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "db"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := sameTarget(target, tc.other); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

type broken struct{ client.Reader }

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no cache")
}

func TestABudgetIsRefusedWhileOthersCannotBeRead(t *testing.T) {
	found := &rules.Findings{}
	budget := &v1beta1.PodUnavailableBudget{}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	New(broken{}, false).Validate(t.Context(), budget, nil, found)
	if len(found.Errs) != 1 || !strings.Contains(found.Errs[0].Error(), "spec: Internal error: listing PodUnavailableBudgets: no cache") {
		t.Errorf("got %v", found.Errs)
	}
}
