// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"hash/maphash"

	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// HashFacts hashes facts, without allocating. The seed is random for each process, so that a user
// cannot make labels that collide.
func HashFacts(seed maphash.Seed, f *points.PodFacts) uint64 {
	labels, namespaceLabels := hashLabels(seed, f.Labels), hashLabels(seed, f.NamespaceLabels)
	var lists maphash.Hash
	lists.SetSeed(seed)
	if n := f.OnNode; n != nil {
		maphash.WriteComparable(&lists, node{hashLabels(seed, n.Labels), n.Unschedulable, n.Created, len(n.Conditions)})
		for _, c := range n.Conditions {
			maphash.WriteComparable(&lists, c)
		}
	}
	for _, m := range f.MissingFacts {
		maphash.WriteComparable(&lists, m)
	}
	for _, p := range f.Pulls {
		maphash.WriteComparable(&lists, p)
	}
	for _, m := range f.Matches {
		maphash.WriteComparable(&lists, m)
	}
	ordinal := -1
	if f.Ordinal != nil {
		ordinal = *f.Ordinal
	}
	return maphash.Comparable(seed, scalars{
		f.Name, f.Namespace, f.NamespacedName, f.Node, f.Zone, f.Region, f.State, f.Updated,
		[9]int{ordinal, f.Assigned, f.Phase, f.Ready, f.Restarts, f.OrderLevel, f.OrderValue, f.DeletionCost, len(f.Matches)},
		[5]int64{f.ReadySince, f.Created, int64(labels), int64(namespaceLabels), int64(lists.Sum64())},
	})
}

// hashLabels adds up the hashes of labels, since labels have no order.
func hashLabels(seed maphash.Seed, labels map[string]string) (sum uint64) {
	for k, v := range labels {
		sum += maphash.Comparable(seed, [2]string{k, v})
	}
	return sum
}

type node struct {
	labels        uint64
	unschedulable bool
	created       int64
	conditions    int
}

type scalars struct {
	name, namespace, namespacedName string
	node, zone, region, state       string
	updated                         bool
	ints                            [9]int
	rest                            [5]int64
}
