// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"cmp"
	"slices"
	"time"
)

// history has the decisions about a place, joined where they have the same answer and are close.
type history struct{ states []state }

// state says which rules hold from a time on.
type state struct {
	at    time.Time
	rules []string // sorted
	// until is when the last of the holds may end by the passing of time alone; zero if one of them names no time.
	until time.Time
	// seen is the last decision with this answer.
	seen time.Time
}

// longestJoined is how far two decisions with the same answer may be apart to be one state. What another manager decided between them, which a
// later file has, ends at most so much too early.
const longestJoined = 10 * time.Minute

// addState adds the answer of a decision. Mostly it is that of the last one: a workload that is held is decided again and again.
func (h *history) addState(s state) {
	n := len(h.states)
	if n == 0 {
		h.states = append(h.states, s)
		return
	}
	last := &h.states[n-1]
	between := s.at.Sub(last.seen)
	same := slices.Equal(s.rules, last.rules)
	switch {
	case same && between >= 0 && between < longestJoined:
		last.seen, last.until = s.at, s.until
	case between == 0: // a round asks more than once, and holds what any answer holds
		h.addToRound(s)
	default:
		h.states = append(h.states, s)
	}
}

// addToRound adds the rules of another answer of the round of the last state.
func (h *history) addToRound(s state) {
	last := &h.states[len(h.states)-1]
	both := slices.Compact(slices.Sorted(slices.Values(slices.Concat(last.rules, s.rules))))
	until := laterOf(last.until, s.until)
	if len(last.rules) > 0 && last.until.IsZero() || len(s.rules) > 0 && s.until.IsZero() {
		until = time.Time{}
	}
	switch {
	case slices.Equal(both, last.rules):
		last.until = until
		return
	case last.at.Before(s.at):
		h.states = append(h.states, state{s.at, both, until, s.seen})
		return
	}
	last.rules, last.until = both, until
	if n := len(h.states); n > 1 {
		if before := &h.states[n-2]; slices.Equal(before.rules, both) && last.at.Sub(before.seen) >= 0 && last.at.Sub(before.seen) < longestJoined {
			before.seen, before.until = last.seen, until
			h.states = h.states[:n-1]
		}
	}
}

// span is a time in which a rule held a workload at a point. It is open if nothing tells when it ended.
type span struct {
	from, to time.Time
	open     bool
}

// listSpans returns the times in which each rule held, as far as they are between two times. A hold ends with the next decision that does not
// have it. If it names its end, it was decided again then if it held on; if not, it counts for so long after its last decision as quiet says, since
// a rollout that was taken back is decided no more.
func (h *history) listSpans(from, to time.Time, quiet time.Duration) map[string][]span {
	out := map[string][]span{}
	states := h.sortedStates()
	for i, s := range states {
		held := span{from: laterOf(s.at, from), to: to, open: true}
		if i < len(states)-1 {
			held.to, held.open = states[i+1].at, false
		}
		limit, unknown := s.seen.Add(quiet), true
		if !s.until.IsZero() {
			limit, unknown = laterOf(s.until, s.seen), false
		}
		if limit.Before(held.to) {
			held.to, held.open = limit, unknown
		}
		if !held.to.After(held.from) {
			continue
		}
		for _, rule := range s.rules {
			out[rule] = append(out[rule], held)
		}
	}
	return out
}

// sortedStates returns the states by time. A state during which another file has a different one goes on after that.
func (h *history) sortedStates() []state {
	byTime := func(a, b state) int { return a.at.Compare(b.at) }
	var out []state
	var longest state
	for _, s := range slices.SortedStableFunc(slices.Values(h.states), byTime) {
		out = append(out, s)
		if s.seen.Before(longest.seen) {
			rest := longest
			rest.at = s.seen
			out = append(out, rest)
			continue
		}
		longest = s
	}
	slices.SortStableFunc(out, byTime)
	return out
}

// mergeSpans joins times that meet: a rule that holds at two points, or in two decisions, holds once.
func mergeSpans(spans []span) (out []span) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to)) })
	for _, s := range spans {
		if n := len(out); n > 0 && !s.from.After(out[n-1].to) {
			last := &out[n-1]
			if s.to.After(last.to) {
				last.to, last.open = s.to, s.open
			}
			continue
		}
		out = append(out, s)
	}
	return out
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
