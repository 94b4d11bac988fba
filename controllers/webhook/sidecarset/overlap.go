// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// selectorsOverlap reports whether the same labels may match both selectors (SS-18).
func selectorsOverlap(a, b *metav1.LabelSelector) bool {
	return !excludesSelected(a, b) && !excludesSelected(b, a)
}

// excludesSelected reports whether some requirement of b excludes all that a selects. A requirement Exists of a key that a does not
// mention excludes it too: users rely on this quirk to separate SidecarSets.
func excludesSelected(a, b *metav1.LabelSelector) bool {
	wanted := valuesOf(a)
	for key, value := range b.MatchLabels {
		if values, ok := wanted[key]; ok && values != nil && !values.Has(value) {
			return true
		}
	}
	return slices.ContainsFunc(b.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		values, mentioned := wanted[r.Key]
		switch r.Operator {
		case metav1.LabelSelectorOpIn:
			return values != nil && !values.HasAny(r.Values...)
		case metav1.LabelSelectorOpNotIn:
			return values != nil && values.Difference(sets.New(r.Values...)).Len() == 0
		case metav1.LabelSelectorOpExists:
			return !mentioned
		case metav1.LabelSelectorOpDoesNotExist:
			return mentioned
		}
		return false
	})
}

// valuesOf returns the values that a selector matches, by key; nil for any value.
func valuesOf(selector *metav1.LabelSelector) map[string]sets.Set[string] {
	all := map[string]sets.Set[string]{}
	add := func(key string, values sets.Set[string]) {
		if before := all[key]; before != nil && values != nil {
			values = before.Intersection(values)
		} else if values == nil {
			values = before
		}
		all[key] = values
	}
	for key, value := range selector.MatchLabels {
		add(key, sets.New(value))
	}
	for _, r := range selector.MatchExpressions {
		switch r.Operator {
		case metav1.LabelSelectorOpIn:
			add(r.Key, sets.New(r.Values...))
		case metav1.LabelSelectorOpExists:
			add(r.Key, nil)
		}
	}
	return all
}
