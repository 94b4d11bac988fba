// SPDX-License-Identifier: Apache-2.0

package facts

import "maps"

// MaxNamespaceLabels is how many bytes the labels of one namespace may have, keys and values
// together, to be facts of its pods: each pod that is asked about has them once more.
const MaxNamespaceLabels = 16 << 10

// namespace has the labels of a namespace. It is another one when they change.
type namespace struct{ labels map[string]string }

// ObserveNamespaces sets the labels of the namespaces that the pods of a cluster-scoped workload
// are in. The next Update builds the facts of those pods anew whose namespace has other labels.
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
