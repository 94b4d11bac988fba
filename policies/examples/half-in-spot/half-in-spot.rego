# METADATA
# title: Half in spot
# description: |
#   Subsets of a UnitedDeployment on nodes that may be taken away at any time get no more than
#   a part of the pods, all of them together.
package extend.placement.half_in_spot

import data.extend.placement.half_in_spot.spot

# METADATA
# title: The part of the pods
# description: Several such subsets share it evenly. A subset of other nodes as well is none of them.
# labels:
#   id: half-in-spot.share
deny contains {
	"rule": "half-in-spot.share",
	"reason": "TooMuchInSpot",
	"message": sprintf("No more than %d %% of the pods run on nodes that may be taken away, which are %d of subset %s.", [round(spot.share * 100), room, subset.name]),
	"target": subset.name,
	"room": room,
} if {
	spots := [subset | some subset in input.subsets; interruptible(subset)]
	count(spots) < count(input.subsets)
	most := floor(input.replicas * spot.share)
	some i, subset in spots
	room := floor(most / count(spots)) + remainder(i, most % count(spots))
}

interruptible(subset) if {
	count(subset.nodes[spot.label]) > 0
	every value in subset.nodes[spot.label] {
		value in spot.values
	}
}

remainder(i, rest) := 1 if {
	i < rest
} else := 0
