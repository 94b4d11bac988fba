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

// Weigh joins what is known of the parts of an answer.
func Weigh(stricter, looser bool) Strictness {
	switch {
	case looser:
		return Looser
	case stricter:
		return Stricter
	}
	return Changed
}

// Both joins two of them.
func Both(a, b Strictness) Strictness {
	return Weigh(a == Stricter || b == Stricter, a == Looser || b == Looser)
}

// Fewer leans towards the lower of two numbers.
func Fewer(then, now int) Strictness { return Weigh(now < then, now > then) }

// FewerHeld compares what holds reach. A hold reaches less than another one if
// that names no pod or the same, no namespace or the same, and if the groups it names are named here too.
// Who holds, and why, does not count.
func FewerHeld(then, now []Hold) Strictness {
	return Weigh(!reach(then, now), !reach(now, then))
}

// reach says whether some holds reach all that others do. Holds of single pods
// may be thousands, so they are looked up.
func reach(holds, others []Hold) bool {
	byPod := map[string][]Hold{}
	for _, h := range holds {
		byPod[h.Pod] = append(byPod[h.Pod], h)
	}
	for _, o := range others {
		within := func(h Hold) bool {
			return Subset(h.Where, o.Where) && (h.Namespace == "" || h.Namespace == o.Namespace)
		}
		if !slices.ContainsFunc(byPod[""], within) && !slices.ContainsFunc(byPod[o.Pod], within) {
			return false
		}
	}
	return true
}

// Subset says whether a map has all of another one's entries.
func Subset(part, of map[string]string) bool {
	for k, v := range part {
		if got, ok := of[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// Covers says whether for each of some others there is one that covers it.
func Covers[T any](all, others []T, one func(a, other T) bool) bool {
	return !slices.ContainsFunc(others, func(o T) bool {
		return !slices.ContainsFunc(all, func(a T) bool { return one(a, o) })
	})
}
