// SPDX-License-Identifier: Apache-2.0

package migrate

// move is the next change of the replicas of the two workloads. At most one of them changes.
type move struct {
	// source and target are the new replicas.
	source, target int
	// done is true if the target has all pods and the source has none.
	done bool
}

// nextMove returns what to do next, so that total pods are available all the time, as far as the migration
// changes that, and at most total+step exist. It changes nothing as long as it has to wait for pods.
func nextMove(total, step int, source, target counts) move {
	stay := move{source: source.desired, target: target.desired}
	if !source.observed || !target.observed {
		return stay
	}
	// Pods of the source may go once pods of the target take their place that are to stay.
	if replaced := min(target.available, target.desired) - (total - source.desired); source.desired > 0 && replaced > 0 {
		stay.source -= min(replaced, source.desired)
		return stay
	}
	// Pods that the source still has to delete take room. Unavailable pods of the target do too.
	if room := total + step - max(source.desired, source.existing); target.desired < min(total, room) {
		stay.target = min(total, room)
		return stay
	}
	stay.done = source.desired == 0 && source.existing == 0 && target.desired >= total && target.available >= total
	return stay
}
