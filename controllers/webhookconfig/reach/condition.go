// SPDX-License-Identifier: Apache-2.0

package reach

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
	// Exact conditions have all requirements.
	Exact Precision = iota
	// Keys are conditions by which a pod has one of some labels, whatever its value, or is in one of some namespaces.
	Keys
	// Any are conditions that all pods fulfil.
	Any
)

func (p Precision) String() string { return [...]string{"Exact", "Keys", "Any"}[p] }

// Longest is how long a condition may be, in bytes. The API server compiles it anew when it changes, and evaluates it for every
// new pod; it reads up to 100,000 bytes.
const Longest = 16_000

// Condition is a CEL expression that is true for all pods that one of the descriptions is of. It is empty where there are none, and
// "true" where all pods are described, or too many sorts of them to be told apart. What it costs does not depend on the pod.
func Condition(all []Reach) (string, Precision) {
	all = slices.DeleteFunc(slices.Clone(all), func(r Reach) bool { return r.None })
	if len(all) == 0 {
		return "", Exact
	}
	if slices.ContainsFunc(all, Reach.Everything) {
		return "true", Any
	}
	if out := expression.AnyOf(exact(all)...); len(out) <= Longest {
		return out, Exact
	}
	if parts := byKeys(all); parts != nil {
		if out := expression.AnyOf(parts...); len(out) <= Longest {
			return out, Keys
		}
	}
	return "true", Any
}

// exact are the conditions of all descriptions. Those that differ in the values of their only requirement are one condition, since
// an installation may have a SidecarSet for each application.
func exact(all []Reach) []string {
	type place struct{ namespaces, key string }
	values := map[place][]string{}
	var parts []string
	for _, r := range all {
		if len(r.Labels) == 1 && r.Labels[0].Operator == metav1.LabelSelectorOpIn {
			at := place{in(r.Namespaces), r.Labels[0].Key}
			values[at] = append(values[at], r.Labels[0].Values...)
			continue
		}
		parts = append(parts, r.condition())
	}
	for at, list := range values {
		parts = append(parts, expression.All(at.namespaces, among(at.key, list)))
	}
	return sorted(parts)
}

// byKeys are conditions that name no value of a label. They are nil if a description has neither a label that must be there nor a
// namespace.
func byKeys(all []Reach) []string {
	var keys, namespaces []string
	for _, r := range all {
		at := slices.IndexFunc(r.Labels, func(l metav1.LabelSelectorRequirement) bool {
			return l.Operator == metav1.LabelSelectorOpIn || l.Operator == metav1.LabelSelectorOpExists
		})
		switch {
		case at >= 0:
			keys = append(keys, there(r.Labels[at].Key))
		case len(r.Namespaces) > 0:
			namespaces = append(namespaces, r.Namespaces...)
		default:
			return nil
		}
	}
	return append(sorted(keys), in(namespaces))
}

func sorted(texts []string) []string { return slices.Compact(slices.Sorted(slices.Values(texts))) }

func (r Reach) condition() string {
	parts := []string{in(r.Namespaces)}
	for _, l := range r.Labels {
		switch l.Operator {
		case metav1.LabelSelectorOpIn:
			parts = append(parts, among(l.Key, l.Values))
		case metav1.LabelSelectorOpNotIn: // a label that is not there is in no list
			parts = append(parts, "!("+among(l.Key, l.Values)+")")
		case metav1.LabelSelectorOpExists:
			parts = append(parts, there(l.Key))
		case metav1.LabelSelectorOpDoesNotExist:
			parts = append(parts, "!"+there(l.Key))
		}
	}
	return expression.All(parts...)
}

func in(namespaces []string) string {
	if len(namespaces) == 0 {
		return ""
	}
	return "request.namespace in " + expression.Literals(sorted(namespaces))
}

func label(key string) string {
	return fmt.Sprintf("object.metadata.?labels[%s]", expression.Literal(key))
}

func there(key string) string { return label(key) + ".hasValue()" }

// absent is no value of a label.
const absent = " "

func among(key string, values []string) string {
	values = sorted(values)
	value := label(key) + ".orValue(" + expression.Literal(absent) + ")"
	if len(values) == 1 {
		return value + " == " + expression.Literal(values[0])
	}
	return value + " in " + expression.Literals(values)
}

// Sort puts descriptions into an order that does not depend on how they were listed, and leaves out what is there twice.
func Sort(all []Reach) []Reach {
	slices.SortFunc(all, func(a, b Reach) int { return cmp.Compare(a.Key(), b.Key()) })
	return slices.CompactFunc(all, func(a, b Reach) bool { return strings.Compare(a.Key(), b.Key()) == 0 })
}
