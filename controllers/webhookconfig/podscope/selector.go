// SPDX-License-Identifier: Apache-2.0

// Package podscope describes the new pods that SidecarSets may concern, in terms that the API server can evaluate itself: the labels of
// a pod and the name of its namespace. A description never leaves out a pod that a SidecarSet selects.
package podscope

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/matching"
)

// Selector describes pods. The zero value describes all of them.
type Selector struct {
	// Namespaces are the names of the namespaces of the pods; empty for any namespace.
	Namespaces []string `json:"namespaces,omitempty"`
	// Labels are requirements that all hold.
	Labels []metav1.LabelSelectorRequirement `json:"labels,omitempty"`
	// None describes no pod at all.
	None bool `json:"none,omitempty"`
}

// largest is how long the JSON of one description may be. A longer one is made less exact: it describes more
// pods.
const largest = 2000

// DescribePods describes the pods that a SidecarSet may select: all pods if its selector is invalid. The API server can evaluate the name
// of a pod's namespace, but not the labels of the namespace, so only requirements on names of a namespace selector are used.
func DescribePods(set *kruise.SidecarSet) Selector {
	s := set.Spec.Selector
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return Selector{None: true} // an empty selector selects nothing
	}
	if _, err := matching.NewSelector(set); err != nil {
		return Selector{}
	}
	out := Selector{Namespaces: matching.NamespaceNames(set.Spec.NamespaceSelector), Labels: labelRequirements(s)}
	if out.encodedSize() > largest {
		out.Labels = slices.DeleteFunc(out.Labels, func(r metav1.LabelSelectorRequirement) bool { return len(r.Values) > 1 })
	}
	if out.encodedSize() > largest {
		out.Namespaces = nil
	}
	if out.encodedSize() > largest {
		return Selector{}
	}
	return out
}

// labelRequirements returns the requirements of a valid selector, in a fixed order.
func labelRequirements(s *metav1.LabelSelector) (out []metav1.LabelSelectorRequirement) {
	for key, value := range s.MatchLabels {
		out = append(out, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}})
	}
	for _, r := range s.MatchExpressions {
		r.Values = slices.Compact(slices.Sorted(slices.Values(r.Values)))
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b metav1.LabelSelectorRequirement) int { return strings.Compare(encodeJSON(a), encodeJSON(b)) })
	return slices.CompactFunc(out, func(a, b metav1.LabelSelectorRequirement) bool { return encodeJSON(a) == encodeJSON(b) })
}

func encodeJSON(of any) string {
	out, err := json.Marshal(of)
	if err != nil {
		panic(err) // impossible: texts and lists of texts can be encoded as JSON
	}
	return string(out)
}

func (r Selector) encodedSize() int { return len(encodeJSON(r)) }

// Key is equal exactly for equal descriptions.
func (r Selector) Key() string { return pathDigest(encodeJSON(r)) }

// pathDigest returns a digest that can be a part of a webhook's path.
func pathDigest(of string) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:8])
}

// MatchesAllPods reports whether all pods are described.
func (r Selector) MatchesAllPods() bool { return !r.None && len(r.Namespaces)+len(r.Labels) == 0 }

// MatchesPod reports whether a pod is described. It gives the same result as the conditions.
func (r Selector) MatchesPod(namespace string, of map[string]string) bool {
	if r.None || len(r.Namespaces) > 0 && !slices.Contains(r.Namespaces, namespace) {
		return false
	}
	s, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: r.Labels})
	return err != nil || s.Matches(labels.Set(of))
}
