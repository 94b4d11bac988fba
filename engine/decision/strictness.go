// SPDX-License-Identifier: Apache-2.0

package decision

import "slices"

// Strictness says which way an answer differs from another one to the same question.
type Strictness string

// The strictnesses. An answer that is stricter in one part and looser in another is
// Looser, because a comparison must show what is no longer prevented.
const (
	// Stricter: less is disrupted, or more is refused.
	Stricter Strictness = "stricter"
	// Looser: something goes that did not go before.
	Looser Strictness = "looser"
	// Changed is neither: another order, another way, or other words.
	Changed Strictness = "changed"
)

// StrictnessOf joins what is known of the parts of an answer.
func StrictnessOf(stricter, looser bool) Strictness {
	switch {
	case looser:
		return Looser
	case stricter:
		return Stricter
	}
	return Changed
}

// CombineStrictness joins two of them.
func CombineStrictness(a, b Strictness) Strictness {
	return StrictnessOf(a == Stricter || b == Stricter, a == Looser || b == Looser)
}

// FewerIsStricter leans towards the lower of two numbers.
func FewerIsStricter(then, now int) Strictness { return StrictnessOf(now < then, now > then) }

// FewerHeld compares what holds reach. A hold reaches less than another one if
// that names no pod or the same, no namespace or the same, and if the groups it names are named here too.
// Who holds, and why, does not count.
func FewerHeld(then, now []Hold) Strictness {
	return StrictnessOf(!coversHolds(then, now), !coversHolds(now, then))
}

// coversHolds reports whether some holds reach all that others do. Holds of single pods
// may be thousands, so they are looked up.
func coversHolds(holds, others []Hold) bool {
	byPod := map[string][]Hold{}
	for _, h := range holds {
		byPod[h.Pod] = append(byPod[h.Pod], h)
	}
	for _, o := range others {
		within := func(h Hold) bool {
			return IsSubset(h.Where, o.Where) && (h.Namespace == "" || h.Namespace == o.Namespace)
		}
		if !slices.ContainsFunc(byPod[""], within) && !slices.ContainsFunc(byPod[o.Pod], within) {
			return false
		}
	}
	return true
}

// IsSubset reports whether a map has all of another one's entries.
func IsSubset(part, of map[string]string) bool {
	for k, v := range part {
		if got, ok := of[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// CoversAll reports whether for each of some others there is one that covers it.
func CoversAll[T any](all, others []T, one func(a, other T) bool) bool {
	return !slices.ContainsFunc(others, func(o T) bool {
		return !slices.ContainsFunc(all, func(a T) bool { return one(a, o) })
	})
}
