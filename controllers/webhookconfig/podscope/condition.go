// SPDX-License-Identifier: Apache-2.0

package podscope

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/webhookconfig/expression"
)

// Precision is how well a condition describes pods.
type Precision int

const (
	// Exact conditions contain all requirements.
	Exact Precision = iota
	// Keys are conditions that require that a pod has one of some labels, with any value, or is in one of some
	// namespaces.
	Keys
	// Any are conditions that are true for all pods.
	Any
)

func (p Precision) String() string { return [...]string{"Exact", "Keys", "Any"}[p] }

// Longest is how long a condition may be, in bytes. The API server compiles it again when it changes, and evaluates it for
// every new pod; it accepts up to 100,000 bytes.
const Longest = 16_000

// CELCondition returns a CEL expression that is true for all pods that one of the descriptions matches. It is empty if there are none,
// and "true" if all pods are described, or if there are too many descriptions. Its cost does not depend on the pod.
func CELCondition(all []Selector) (string, Precision) {
	all = slices.DeleteFunc(slices.Clone(all), func(r Selector) bool { return r.None })
	if len(all) == 0 {
		return "", Exact
	}
	if slices.ContainsFunc(all, Selector.MatchesAllPods) {
		return "true", Any
	}
	if out := expression.AnyOf(exactConditions(all)...); len(out) <= Longest {
		return out, Exact
	}
	if parts := byKeys(all); parts != nil {
		if out := expression.AnyOf(parts...); len(out) <= Longest {
			return out, Keys
		}
	}
	return "true", Any
}

// exactConditions returns the conditions of all descriptions. Descriptions that differ only in the values of their single requirement share
// one condition, since an installation may have a SidecarSet for each application.
func exactConditions(all []Selector) []string {
	type place struct{ namespaces, key string }
	values := map[place][]string{}
	var parts []string
	for _, r := range all {
		if len(r.Labels) == 1 && r.Labels[0].Operator == metav1.LabelSelectorOpIn {
			at := place{namespaceCondition(r.Namespaces), r.Labels[0].Key}
			values[at] = append(values[at], r.Labels[0].Values...)
			continue
		}
		parts = append(parts, r.celCondition())
	}
	for at, list := range values {
		parts = append(parts, expression.AllOf(at.namespaces, labelCondition(at.key, list)))
	}
	return sortedUnique(parts)
}

// byKeys returns conditions that name no value of a label. It returns nil if a description has neither a required label nor a
// namespace.
func byKeys(all []Selector) []string {
	var keys, namespaces []string
	for _, r := range all {
		at := slices.IndexFunc(r.Labels, func(l metav1.LabelSelectorRequirement) bool {
			return l.Operator == metav1.LabelSelectorOpIn || l.Operator == metav1.LabelSelectorOpExists
		})
		switch {
		case at >= 0:
			keys = append(keys, labelExists(r.Labels[at].Key))
		case len(r.Namespaces) > 0:
			namespaces = append(namespaces, r.Namespaces...)
		default:
			return nil
		}
	}
	return append(sortedUnique(keys), namespaceCondition(namespaces))
}

func sortedUnique(texts []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(texts)))
}

func (r Selector) celCondition() string {
	parts := []string{namespaceCondition(r.Namespaces)}
	for _, l := range r.Labels {
		switch l.Operator {
		case metav1.LabelSelectorOpIn:
			parts = append(parts, labelCondition(l.Key, l.Values))
		case metav1.LabelSelectorOpNotIn: // a missing label is in no list
			parts = append(parts, "!("+labelCondition(l.Key, l.Values)+")")
		case metav1.LabelSelectorOpExists:
			parts = append(parts, labelExists(l.Key))
		case metav1.LabelSelectorOpDoesNotExist:
			parts = append(parts, "!"+labelExists(l.Key))
		}
	}
	return expression.AllOf(parts...)
}

func namespaceCondition(namespaces []string) string {
	if len(namespaces) == 0 {
		return ""
	}
	return "request.namespace in " + expression.ListLiteral(sortedUnique(namespaces))
}

func labelExpression(key string) string {
	return fmt.Sprintf("object.metadata.?labels[%s]", expression.TextLiteral(key))
}

func labelExists(key string) string { return labelExpression(key) + ".hasValue()" }

// absent is no value of a label.
const absent = " "

func labelCondition(key string, values []string) string {
	values = sortedUnique(values)
	value := labelExpression(key) + ".orValue(" + expression.TextLiteral(absent) + ")"
	if len(values) == 1 {
		return value + " == " + expression.TextLiteral(values[0])
	}
	return value + " in " + expression.ListLiteral(values)
}

// SortDistinct sorts descriptions, and removes duplicates.
func SortDistinct(all []Selector) []Selector {
	slices.SortFunc(all, func(a, b Selector) int { return cmp.Compare(a.Key(), b.Key()) })
	return slices.CompactFunc(all, func(a, b Selector) bool { return strings.Compare(a.Key(), b.Key()) == 0 })
}
