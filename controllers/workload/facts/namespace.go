// SPDX-License-Identifier: Apache-2.0

package facts

import "maps"

// namespace has the labels of a namespace. When they change, another one replaces it.
type namespace struct{ labels map[string]string }

// ObserveNamespaces sets the labels of the namespaces of the pods of a cluster-scoped
// workload. The next Update rebuilds the facts of pods in namespaces whose labels have changed.
func (s *Set) ObserveNamespaces(labels map[string]map[string]string) {
	next := make(map[string]*namespace, len(labels))
	for name, all := range labels {
		if known := s.namespaces[name]; known != nil && maps.Equal(known.labels, all) {
			next[name] = known
			continue
		}
		next[name] = &namespace{labels: all}
	}
	s.namespaces = next
}
