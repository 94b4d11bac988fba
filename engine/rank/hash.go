// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"hash/maphash"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Hash tells facts apart, without allocating. The seed is one of the process,
// so that a user cannot make labels that collide.
func Hash(seed maphash.Seed, f *decision.PodFacts) uint64 {
	// Labels have no order, so their hashes are added.
	var labels uint64
	for k, v := range f.Labels {
		labels += maphash.Comparable(seed, [2]string{k, v})
	}
	var lists maphash.Hash
	lists.SetSeed(seed)
	for _, m := range f.Matches {
		maphash.WriteComparable(&lists, m)
	}
	return maphash.Comparable(seed, scalars{
		f.Name, f.Node, f.Zone, f.Region, f.State, f.Updated,
		[8]int{f.Assigned, f.Phase, f.Ready, f.Restarts, f.OrderLevel, f.OrderValue, f.DeletionCost, len(f.Matches)},
		[4]int64{f.ReadySince, f.Created, int64(labels), int64(lists.Sum64())},
	})
}

type scalars struct {
	name, node, zone, region, state string
	updated                         bool
	ints                            [8]int
	rest                            [4]int64
}
