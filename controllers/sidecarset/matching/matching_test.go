// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// Which SidecarSets are for the pods of the namespace shop, and which of them name it.
func TestWhichNamespacesASidecarSetNames(t *testing.T) {
	const name = corev1.LabelMetadataName
	by := func(requirements ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: requirements}
	}
	is := func(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	for title, tc := range map[string]struct {
		selector        *metav1.LabelSelector
		names           string
		selected, local bool
	}{
		"all namespaces":                     {nil, "[]", true, false},
		"any label":                          {&metav1.LabelSelector{}, "[]", true, false},
		"the name as a label":                {&metav1.LabelSelector{MatchLabels: map[string]string{name: "shop"}}, "[shop]", true, true},
		"another name as a label":            {&metav1.LabelSelector{MatchLabels: map[string]string{name: "bank"}}, "[bank]", false, false},
		"the name and a label that it has":   {&metav1.LabelSelector{MatchLabels: map[string]string{name: "shop", "tier": "gold"}}, "[shop]", true, true},
		"the name and a label that it lacks": {&metav1.LabelSelector{MatchLabels: map[string]string{name: "shop", "tier": "tin"}}, "[shop]", false, true},
		"another label":                      {&metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}, "[]", true, false},
		"one of several names":               {by(is("tier", metav1.LabelSelectorOpExists), is(name, metav1.LabelSelectorOpIn, "bank", "shop")), "[bank shop]", true, true},
		"none of several names":              {by(is(name, metav1.LabelSelectorOpIn, "bank", "post")), "[bank post]", false, false},
		"all names but another":              {by(is(name, metav1.LabelSelectorOpNotIn, "bank")), "[]", true, false},
		"any name":                           {by(is(name, metav1.LabelSelectorOpExists)), "[]", true, false},
		"the value of another label":         {by(is("tier", metav1.LabelSelectorOpIn, "shop", "gold")), "[]", true, false},
	} {
		t.Run(title, func(t *testing.T) {
			set := &kruise.SidecarSet{}
			set.Spec.NamespaceSelector = tc.selector
			s, err := NewSelector(set)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(s.RequiredNamespaces()); got != tc.names {
				t.Errorf("it names %s, want %s", got, tc.names)
			}
			if got := s.MatchesNamespace("shop", map[string]string{name: "shop", "tier": "gold"}); got != tc.selected {
				t.Errorf("it selects the namespace: %t, want %t", got, tc.selected)
			}
			if got := s.NamesNamespace("shop"); got != tc.local {
				t.Errorf("it names the namespace: %t, want %t", got, tc.local)
			}
		})
	}
}
