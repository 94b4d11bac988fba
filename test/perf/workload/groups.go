// SPDX-License-Identifier: Apache-2.0

package workload

// groups are kinds that are measured together, yardsticks first.
var groups = []struct {
	name  string
	kinds []Kind
}{
	{"both", []Kind{Deployment(), CloneSet()}},
	{"cloneset", []Kind{CloneSet()}},
	{"deployment", []Kind{Deployment()}},
	{"statefulset", []Kind{StatefulSet(), AdvancedStatefulSet()}},
}

// Groups are the names of what can be measured.
func Groups() []string {
	names := make([]string, len(groups))
	for i, g := range groups {
		names[i] = g.name
	}
	return names
}

// Group returns the kinds of a group in the order in which they are measured, none if
// there is no such group.
func Group(name string) []Kind {
	for _, g := range groups {
		if g.name == name {
			return g.kinds
		}
	}
	return nil
}
