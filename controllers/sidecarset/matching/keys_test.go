// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

// A SidecarSet and a pod that it selects find each other by their keys, whatever the selector is like.
func TestNoSelectedPodIsPassedOver(t *testing.T) {
	key, value := rapid.SampledFrom([]string{"a", "b", "c"}), rapid.SampledFrom([]string{"", "x", "y", "z"})
	rapid.Check(t, func(t *rapid.T) {
		set := &kruise.SidecarSet{}
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: rapid.MapOfN(key, value, 0, 2).Draw(t, "labels")}
		for range rapid.IntRange(0, 3).Draw(t, "expressions") {
			r := metav1.LabelSelectorRequirement{Key: key.Draw(t, "key")}
			r.Operator = rapid.SampledFrom([]metav1.LabelSelectorOperator{
				metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
			}).Draw(t, "operator")
			if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
				r.Values = rapid.SliceOfN(value, 1, 3).Draw(t, "values")
			}
			set.Spec.Selector.MatchExpressions = append(set.Spec.Selector.MatchExpressions, r)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: rapid.MapOf(key, value).Draw(t, "pod")}}
		selector, err := NewSelector(set)
		if err != nil {
			t.Fatal(err)
		}
		keys := KeysOf(pod)
		meet := slices.ContainsFunc(IndexKeys(set), func(k string) bool { return slices.Contains(keys, k) })
		if selector.MatchesLabels(pod.Labels) && !meet {
			t.Fatalf("the SidecarSet has the keys %q, and the pod %q", IndexKeys(set), keys)
		}
		for _, k := range IndexKeys(set) {
			if k != AnyKey && selector.MatchesLabels(pod.Labels) && len(IndexKeys(set)) == 1 && !slices.Contains(IndexLabels(pod), k) {
				t.Fatalf("the pod is not found by %q", k)
			}
		}
	})
}

func TestKeysAreThoseOfTheNarrowestRequirement(t *testing.T) {
	in := func(key string, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}
	}
	for want, selector := range map[string]metav1.LabelSelector{
		"[]":        {},
		"[a=1]":     {MatchLabels: map[string]string{"b": "2", "a": "1"}, MatchExpressions: []metav1.LabelSelectorRequirement{in("c", "3")}},
		"[b=1]":     {MatchExpressions: []metav1.LabelSelectorRequirement{in("a", "1", "2"), in("b", "1")}},
		"[a=1 a=2]": {MatchExpressions: []metav1.LabelSelectorRequirement{in("a", "1", "2"), {Key: "b", Operator: metav1.LabelSelectorOpExists}}},
		`[""]`:      {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "b", Operator: metav1.LabelSelectorOpExists}}},
	} {
		set := &kruise.SidecarSet{}
		set.Spec.Selector = &selector
		got := fmt.Sprint(SelectorKeys(set))
		if len(SelectorKeys(set)) == 1 && SelectorKeys(set)[0] == AnyKey {
			got = fmt.Sprintf("%q", SelectorKeys(set))
		}
		if got != want {
			t.Errorf("the keys of %v are %s, want %s", selector, got, want)
		}
	}
}
