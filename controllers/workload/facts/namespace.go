// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"maps"

	"github.com/regatta-sh/regatta/engine/decision"
)

// namespace has the labels of a namespace, or why they are missing. When they change, another one replaces it.
type namespace struct {
	labels  map[string]string
	missing *decision.MissingFact
}

func (n *namespace) isEqual(o *namespace) bool {
	return maps.Equal(n.labels, o.labels) && (n.missing == nil) == (o.missing == nil) && (n.missing == nil || *n.missing == *o.missing)
}

// ObserveNamespaces sets the labels of the namespaces of the pods of a cluster-scoped workload, and the missing fact of each
// namespace whose labels are not available. The next Update rebuilds the facts of pods in namespaces that have changed.
func (s *Set) ObserveNamespaces(labels map[string]map[string]string, missing map[string]decision.MissingFact) {
	next := make(map[string]*namespace, len(labels)+len(missing))
	for name, all := range labels {
		next[name] = &namespace{labels: all}
	}
	for name, fact := range missing {
		next[name] = &namespace{missing: &fact}
	}
	for name, now := range next {
		if known := s.namespaces[name]; known != nil && known.isEqual(now) {
			next[name] = known
		}
	}
	s.namespaces = next
}
