// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"slices"

	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// Order has the place of each pod of a workload. It is immutable.
type Order struct {
	rows []*row // entries of the memo; this part of them never changes
	// Outcome is decision.Decided if policies gave all places; otherwise the places are those of the
	// default order.
	Outcome decision.Outcome
	// Records are the decisions that were made for this order, none if all places were remembered.
	Records []decision.Record
}

// Len is the number of pods.
func (o *Order) Len() int { return len(o.rows) }

// PodHolds are the holds of one pod.
func (o *Order) PodHolds(i int) []decision.Hold { return o.rows[i].holds }

// ComparePods is negative if pod i comes before pod j, by their keys.
func (o *Order) ComparePods(i, j int) int { return compareKeys(o.rows[i].key, o.rows[j].key) }

// CompareLead is negative if pod i comes before pod j regardless of their keys.
func (o *Order) CompareLead(i, j int) int { return compareKeys(o.rows[i].lead, o.rows[j].lead) }

// compareKeys compares element by element, smaller ones first. A missing element counts as 0.
func compareKeys(a, b []float64) int {
	for n := range min(len(a), len(b)) {
		switch {
		case a[n] < b[n]:
			return -1
		case a[n] > b[n]:
			return 1
		}
	}
	return 0
}

// SortPods orders pods by their keys. Equal ones keep their order.
func (o *Order) SortPods(pods []int) {
	from := o.commonPrefixLen(pods)
	// Items are small and without pointers, since sorting reads and moves them often: each has the first
	// element of a key that is not the same for all pods.
	type item struct {
		first float64
		place int32 // the place before sorting, so that equal pods need no stable sort
		pod   int32
	}
	items := make([]item, len(pods))
	for n, i := range pods {
		items[n] = item{place: int32(n), pod: int32(i)}
		if key := o.rows[i].key; from < len(key) {
			items[n].first = key[from]
		}
	}
	slices.SortFunc(items, func(a, b item) int {
		switch {
		case a.first < b.first:
			return -1
		case a.first > b.first:
			return 1
		}
		if c := o.ComparePods(int(a.pod), int(b.pod)); c != 0 {
			return c
		}
		return int(a.place) - int(b.place)
	})
	for n := range items {
		pods[n] = int(items[n].pod)
	}
}

// commonPrefixLen is how many elements the keys of pods have in common.
func (o *Order) commonPrefixLen(pods []int) int {
	if len(pods) == 0 {
		return 0
	}
	first := o.rows[pods[0]].key
	n := len(first)
	for _, i := range pods[1:] {
		key := o.rows[i].key
		n = min(n, len(key))
		for c := range n {
			if key[c] != first[c] {
				n = c
				break
			}
		}
	}
	return n
}

// SortByLead orders pods by lead alone: pods that come first or last regardless of their keys. Equal
// ones keep their order.
func (o *Order) SortByLead(pods []int) {
	for n := 1; n < len(pods); n++ {
		if o.CompareLead(pods[n-1], pods[n]) > 0 {
			slices.SortStableFunc(pods, o.CompareLead)
			return
		}
	}
}

// ArrangePods puts waiting pods in the order in which they are to be taken: it sorts by keys,
// scatters, and then sorts by lead.
func (o *Order) ArrangePods(waiting []int, terms []points.ScatterTerm, labels Labels) []int {
	o.SortPods(waiting)
	out := ScatterPods(waiting, terms, o.Len(), labels)
	o.SortByLead(out)
	return out
}
