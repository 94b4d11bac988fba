# METADATA
# title: Drain a zone
# description: |
#   The pods of a UnitedDeployment leave the zones that are named, some at a time, as those of
#   the other zones are ready.
package extend.placement.drain_a_zone

import future.keywords.not

import data.extend.placement.drain_a_zone.draining

# METADATA
# title: Some at a time
# description: A subset that is drained has room for what it has, less a step while all other pods are ready.
# labels:
#   id: drain-a-zone.step
deny contains {
	"rule": "drain-a-zone.step",
	"reason": "ZoneDrained",
	"message": sprintf("The zone of subset %s is drained: its pods move %d at a time, as those of other subsets are ready.", [subset.name, draining.step]),
	"target": subset.name,
	"room": room,
} if {
	some i, subset in input.subsets
	drained(subset)
	some other in input.subsets
	not drained(other)
	room := max([0, subset.current - step(i)])
}

# One subset at a time: the first that has pods.
step(i) := draining.step if {
	first := min({j | some j, subset in input.subsets; drained(subset); subset.current > 0})
	i == first
	every other in input.subsets {
		settled(other)
	}
} else := 0

settled(subset) if drained(subset)

settled(subset) if subset.ready >= subset.current

drained(subset) if {
	count(subset.nodes[draining.label]) > 0
	every zone in subset.nodes[draining.label] {
		zone in draining.zones
	}
}
