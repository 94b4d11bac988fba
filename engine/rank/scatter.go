// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"math"
	"slices"

	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// Labels returns the value of a label of the pod at a position, "" if it is not set.
type Labels func(pod int, key string) string

// ScatterPods spreads the pods that have certain labels over the whole of a list of
// waiting pods. Positions refer to all pods of the workload, of which there are total. The
// shares among all of them decide how close together the waiting ones may be, so that the rollout of
// one group does not get faster or slower.
//
// The result may share memory with waiting, which must not be used again.
func ScatterPods(waiting []int, terms []points.ScatterTerm, total int, labels Labels) []int {
	if len(waiting) <= 1 || len(terms) == 0 {
		return waiting
	}
	for _, t := range matchingTerms(waiting, terms, labels) {
		waiting = scatterMatching(waiting, t, total, labels)
	}
	return waiting
}

// matchingTerms lists the distinct terms that select a waiting pod, those that select
// most first.
func matchingTerms(waiting []int, terms []points.ScatterTerm, labels Labels) []points.ScatterTerm {
	type counted struct {
		points.ScatterTerm
		n int
	}
	var list []counted
	for _, t := range terms {
		if slices.ContainsFunc(list, func(c counted) bool { return c.ScatterTerm == t }) {
			continue
		}
		c := counted{ScatterTerm: t}
		for _, i := range waiting {
			if labels(i, t.Key) == t.Value {
				c.n++
			}
		}
		if c.n > 0 {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b counted) int { return b.n - a.n })
	out := make([]points.ScatterTerm, len(list))
	for i, c := range list {
		out[i] = c.ScatterTerm
	}
	return out
}

func scatterMatching(waiting []int, t points.ScatterTerm, total int, labels Labels) []int {
	matched, rest := make([]int, 0, len(waiting)), make([]int, 0, len(waiting))
	for _, i := range waiting {
		if labels(i, t.Key) == t.Value {
			matched = append(matched, i)
		} else {
			rest = append(rest, i)
		}
	}
	if len(matched) <= 1 || len(rest) <= 1 {
		return waiting
	}
	allMatched := 0
	for i := range total {
		if labels(i, t.Key) == t.Value {
			allMatched++
		}
	}
	allRest := total - allMatched
	// The last matching pod ends the list, so that the group is spread from end to end.
	tail := matched[len(matched)-1]
	matched = matched[:len(matched)-1]
	allMatched--

	out := make([]int, 0, len(waiting))
	take := func(from *[]int, n int) {
		n = min(n, len(*from))
		out = append(out, (*from)[:n]...)
		*from = (*from)[n:]
	}
	var mSize, rSize, n int
	if float32(allRest)/float32(allMatched) >= float32(len(rest))/float32(len(matched)) {
		mSize, rSize, n = interleaveSizes(len(matched), len(rest))
	} else {
		mSize, rSize, _ = interleaveSizes(allMatched, allRest)
		n = min(len(matched)/mSize, len(rest)/rSize)
		take(&rest, len(rest)-n*rSize)
	}
	for range n {
		take(&matched, mSize)
		take(&rest, rSize)
	}
	take(&matched, len(matched))
	take(&rest, len(rest))
	return append(out, tail)
}

// interleaveSizes says how many of each go together, and how many times.
func interleaveSizes(m, r int) (mSize, rSize, n int) {
	n = min(m, r)
	round := func(a int) int { return int(math.Round(float64(a) / float64(n))) }
	return round(m), round(r), n
}
