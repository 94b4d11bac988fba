// SPDX-License-Identifier: Apache-2.0

// Package matching says which pods a SidecarSet selects (SS-01).
package matching

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// Selector selects pods.
type Selector struct {
	pods, updated labels.Selector
	// namespaces is nil if the SidecarSet applies to all namespaces.
	namespaces labels.Selector
	// names are the names that the namespace selector requires; none if it does not require any by name.
	names []string
}

// NewSelector reads the selectors of a SidecarSet.
func NewSelector(set *kruise.SidecarSet) (*Selector, error) {
	out := &Selector{pods: labels.Nothing(), updated: nil}
	var err error
	if s := set.Spec.Selector; s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
		if out.pods, err = metav1.LabelSelectorAsSelector(s); err != nil {
			return nil, fmt.Errorf("spec.selector: %w", err)
		}
	}
	if s := set.Spec.NamespaceSelector; s != nil {
		if out.namespaces, err = metav1.LabelSelectorAsSelector(s); err != nil {
			return nil, fmt.Errorf("spec.namespaceSelector: %w", err)
		}
		out.names = NamespaceNames(s)
	}
	if s := set.Spec.UpdateStrategy.Selector; s != nil {
		if out.updated, err = metav1.LabelSelectorAsSelector(s); err != nil {
			return nil, fmt.Errorf("spec.updateStrategy.selector: %w", err)
		}
	}
	return out, nil
}

// NamespaceNames are the namespaces that a selector requires by name; none if it does not require any by name.
func NamespaceNames(s *metav1.LabelSelector) []string {
	if s == nil {
		return nil
	}
	if name, ok := s.MatchLabels[corev1.LabelMetadataName]; ok {
		return []string{name}
	}
	for _, r := range s.MatchExpressions {
		if r.Key == corev1.LabelMetadataName && r.Operator == metav1.LabelSelectorOpIn {
			return r.Values
		}
	}
	return nil
}

// PodSelector returns the selector of the labels of pods.
func (s *Selector) PodSelector() labels.Selector { return s.pods }

// NamesNamespace reports whether the SidecarSet requires a namespace by its name.
func (s *Selector) NamesNamespace(namespace string) bool { return slices.Contains(s.names, namespace) }

// AnyNamespace reports whether the SidecarSet applies to all namespaces, so that none has to be read.
func (s *Selector) AnyNamespace() bool { return s.namespaces == nil }

// MatchesLabels reports whether the selector of pods matches labels.
func (s *Selector) MatchesLabels(pod map[string]string) bool { return s.pods.Matches(labels.Set(pod)) }

// MatchesNamespace reports whether the SidecarSet applies to a namespace with this name and these labels.
func (s *Selector) MatchesNamespace(name string, of map[string]string) bool {
	return s.namespaces == nil || (len(s.names) == 0 || slices.Contains(s.names, name)) && s.namespaces.Matches(labels.Set(of))
}

// MatchesUpdate reports whether updateStrategy.selector selects a pod; nil if there is no such selector.
func (s *Selector) MatchesUpdate(pod map[string]string) *bool {
	if s.updated == nil {
		return nil
	}
	selected := s.updated.Matches(labels.Set(pod))
	return &selected
}

// Memory keeps the selectors of SidecarSets: parsing a selector takes longer than matching with it.
type Memory struct {
	mu  sync.RWMutex
	all map[types.UID]remembered
}

type remembered struct {
	generation int64
	selector   *Selector
	err        error
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory { return &Memory{all: map[types.UID]remembered{}} }

// SelectorFor returns the selector of a SidecarSet at its present generation.
func (m *Memory) SelectorFor(set *kruise.SidecarSet) (*Selector, error) {
	m.mu.RLock()
	known, ok := m.all[set.UID]
	m.mu.RUnlock()
	if ok && known.generation == set.Generation && set.UID != "" {
		return known.selector, known.err
	}
	known = remembered{generation: set.Generation}
	known.selector, known.err = NewSelector(set)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[set.UID] = known
	return known.selector, known.err
}

// RetainOnly forgets all SidecarSets except these, once the Memory has many more than these.
func (m *Memory) RetainOnly(sets []kruise.SidecarSet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.all) <= 2*len(sets)+16 {
		return
	}
	there := map[types.UID]bool{}
	for i := range sets {
		there[sets[i].UID] = true
	}
	for uid := range m.all {
		if !there[uid] {
			delete(m.all, uid)
		}
	}
}
