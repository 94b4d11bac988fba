// SPDX-License-Identifier: Apache-2.0

package migrate

import "time"

// move is the next change of the replicas of the two workloads. At most one of them changes.
type move struct {
	// source and target are the new replicas.
	source, target int
	// done is true if the target has all pods and the source has none.
	done bool
}

// nextMove returns what to do next, so that total pods are available all the time, as far as the migration
// changes that, and at most total+step exist. It changes nothing as long as it has to wait for pods. stable is how many
// pods of the target have been available for a while.
func nextMove(total, step int, source, target counts, stable int) move {
	stay := move{source: source.desired, target: target.desired}
	if !source.observed || !target.observed {
		return stay
	}
	// Pods of the target that are to stay, and that have the template of the source.
	lasting := min(stable, target.available, target.desired, target.updated)
	room := total + step - max(target.desired, target.existing)
	switch replaced := lasting - (total - source.desired); {
	case source.desired > 0 && replaced > 0: // pods of the source may go once pods of the target take their place
		stay.source -= min(replaced, source.desired)
		return stay
	case min(target.available, target.desired)+source.desired < total && source.desired < room: // pods of the target failed
		stay.source = min(total-min(target.available, target.desired), room)
		return stay
	}
	// Pods that the source still has to delete take room. Unavailable pods of the target do too.
	if room := total + step - max(source.desired, source.existing); target.desired < min(total, room) {
		stay.target = min(total, room)
		return stay
	}
	stay.done = source.desired == 0 && source.existing == 0 && target.desired >= total && lasting >= total
	return stay
}

// steadiness tells for how long pods have been available.
type steadiness struct {
	// least is for how long pods must be available before they count.
	least   time.Duration
	samples []sample
}

type sample struct {
	at        time.Time
	available int
}

// observeCount notes how many pods are available, and returns how many have been so all the time lately.
func (s *steadiness) observeCount(now time.Time, available int) int {
	s.samples = append(s.samples, sample{now, available})
	begin := now.Add(-s.least)
	for len(s.samples) > 1 && !s.samples[1].at.After(begin) {
		s.samples = s.samples[1:]
	}
	if s.samples[0].at.After(begin) { // nobody looked long enough
		return 0
	}
	lowest := available
	for _, c := range s.samples {
		lowest = min(lowest, c.available)
	}
	return lowest
}
