// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// Indexes by which SidecarSets find the pods that they may select, and pods these SidecarSets, without a list of all of them.
const (
	// KeysIndex finds SidecarSets by their SelectorKeys.
	KeysIndex = "sidecarSetKeys"
	// LabelsIndex finds pods by their labels.
	LabelsIndex = "podLabels"
)

// AnyKey is the key of SidecarSets that require no particular value of a label.
const AnyKey = ""

// SelectorKeys are labels, key and value. A pod that the SidecarSet selects has one of them: those of the requirement that
// allows the fewest values.
func SelectorKeys(set *kruise.SidecarSet) []string {
	s := set.Spec.Selector
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return nil // it selects nothing
	}
	if len(s.MatchLabels) > 0 { // the first by name, so that equal selectors have equal keys
		key := slices.Min(slices.Collect(maps.Keys(s.MatchLabels)))
		return []string{labelKey(key, s.MatchLabels[key])}
	}
	var out []string
	for _, r := range s.MatchExpressions {
		if r.Operator != metav1.LabelSelectorOpIn || out != nil && len(r.Values) >= len(out) {
			continue
		}
		out = make([]string, 0, len(r.Values))
		for _, value := range r.Values {
			out = append(out, labelKey(r.Key, value))
		}
	}
	if out == nil {
		return []string{AnyKey}
	}
	return out
}

func labelKey(key, value string) string { return key + "=" + value }

// KeysOf are the keys of the SidecarSets that may select a pod.
func KeysOf(pod *corev1.Pod) []string { return append(labelsOf(pod), AnyKey) }

func labelsOf(pod *corev1.Pod) []string {
	out := make([]string, 0, len(pod.Labels)+1)
	for key, value := range pod.Labels {
		out = append(out, labelKey(key, value))
	}
	return out
}

// IndexKeys returns the values of KeysIndex for a SidecarSet.
func IndexKeys(o client.Object) []string {
	if set, ok := o.(*kruise.SidecarSet); ok {
		return SelectorKeys(set)
	}
	return nil
}

// IndexLabels returns the values of LabelsIndex for a pod.
func IndexLabels(o client.Object) []string {
	if pod, ok := o.(*corev1.Pod); ok {
		return labelsOf(pod)
	}
	return nil
}

// RequiredNamespaces are the names of the namespaces that a SidecarSet requires; none if it does not require any by name.
func (s *Selector) RequiredNamespaces() []string { return s.names }
