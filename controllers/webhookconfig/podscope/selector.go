// SPDX-License-Identifier: Apache-2.0

// Package podscope describes the new pods that SidecarSets may concern, as the API server can find out by itself: by the labels of a pod
// and the name of its namespace. A description never leaves out a pod that a SidecarSet selects.
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
	// Namespaces are the names of those that the pods are in; any namespace if there are none.
	Namespaces []string `json:"namespaces,omitempty"`
	// Labels are requirements that all hold.
	Labels []metav1.LabelSelectorRequirement `json:"labels,omitempty"`
	// None describes no pod at all.
	None bool `json:"none,omitempty"`
}

// largest is how long the JSON of one description may be. A longer one says less: it describes more pods.
const largest = 2000

// DescribePods describes the pods that a SidecarSet may select. Those of a selector that cannot be read are all pods. The API server knows
// the name of a pod's namespace and not its labels, so that a namespace selector counts as far as it requires names.
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

// labelRequirements are those of a selector that is valid, in an order that does not depend on how it is written.
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
		panic(err) // texts and lists of texts have a JSON form
	}
	return string(out)
}

func (r Selector) encodedSize() int { return len(encodeJSON(r)) }

// Key is the same for descriptions of the same text, and no other.
func (r Selector) Key() string { return pathDigest(encodeJSON(r)) }

// pathDigest is a part of a path, as paths of webhooks may have them.
func pathDigest(of string) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:8])
}

// MatchesAllPods reports whether all pods are described.
func (r Selector) MatchesAllPods() bool { return !r.None && len(r.Namespaces)+len(r.Labels) == 0 }

// MatchesPod reports whether a pod is described, as the conditions do.
func (r Selector) MatchesPod(namespace string, of map[string]string) bool {
	if r.None || len(r.Namespaces) > 0 && !slices.Contains(r.Namespaces, namespace) {
		return false
	}
	s, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: r.Labels})
	return err != nil || s.Matches(labels.Set(of))
}
