// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"

	"github.com/regatta-sh/regatta/engine/decision"
)

// What follows is shared by the points that say which of some places are next, such as the
// nodes of a BroadcastJob. open says of each place by name whether it waits.

// checkPlaces refuses an answer that names a place that is none, or has a wish without a reason or
// a message.
func checkPlaces(field string, names []string, open map[string]bool, holds []Hold, denials []Denial) error {
	for _, name := range names {
		if _, known := open[name]; !known {
			return fmt.Errorf("%s names %q, which the job is not for", field, name)
		}
	}
	for i, h := range holds {
		if h.Reason == "" || h.Message == "" {
			return fmt.Errorf("holds[%d] of rule %s has no reason or no message", i, h.Rule)
		}
	}
	for i, d := range denials {
		if d.Reason == "" || d.Message == "" {
			return fmt.Errorf("denials[%d] of rule %s has no reason or no message", i, d.Rule)
		}
	}
	return nil
}

// nextPlaces are the places of an answer that go now: the clamp. They wait, are neither denied nor
// held, and there is room for them.
func nextPlaces(names []string, open map[string]bool, room int, holds []Hold, denials []Denial) []string {
	kept := map[string]bool{}
	for _, h := range holds {
		if h.Target == "" {
			return nil
		}
		kept[h.Target] = true
	}
	var out []string
	for _, name := range names {
		if len(out) >= room {
			break
		}
		if open[name] && !kept[name] && findDenial(denials, name) == nil {
			kept[name] = true // once
			out = append(out, name)
		}
	}
	return out
}

// deniedOf are the places that wait and are denied.
func deniedOf(open map[string]bool, denials []Denial) map[string]Denial {
	out := map[string]Denial{}
	for name, waits := range open {
		if d := findDenial(denials, name); d != nil && waits {
			out[name] = *d
		}
	}
	return out
}

// reportedHold is the hold that a condition reports: the first that keeps a place that waits. Those of
// all places come first.
func reportedHold(open map[string]bool, holds []Hold, denials []Denial) *Hold {
	some := false
	waits := func(name string) bool { return open[name] && findDenial(denials, name) == nil }
	for name := range open {
		some = some || waits(name)
	}
	var first *Hold
	for i := range holds {
		h := &holds[i]
		if keeps := h.Target == "" && some || waits(h.Target); keeps && (first == nil || slices.Compare(holdSortKey(h), holdSortKey(first)) < 0) {
			first = h
		}
	}
	return first
}

func holdSortKey(h *Hold) []string { return []string{h.Target, h.Rule, h.Reason, h.Message} }

// lean: an answer by which other places may go as well is looser.
func placesStrictness(then, now []string) decision.Strictness {
	return decision.StrictnessOf(!isSubset(then, now), !isSubset(now, then))
}

// isSubset reports whether each of some names is one of others.
func isSubset(names, others []string) bool {
	have := make(map[string]bool, len(others))
	for _, name := range others {
		have[name] = true
	}
	return !slices.ContainsFunc(names, func(name string) bool { return !have[name] })
}

// requeueTimes are the times that holds name.
func requeueTimes(holds []Hold) []string {
	texts := make([]string, len(holds))
	for i, h := range holds {
		texts[i] = h.Until
	}
	return texts
}
