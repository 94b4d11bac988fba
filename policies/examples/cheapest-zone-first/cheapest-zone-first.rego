# METADATA
# title: Cheapest zone first
# description: |
#   Subsets of a UnitedDeployment are filled by what a pod costs in their zone, and none of
#   these zones gets more than a part of the pods. Prices are data.
package extend.placement.cheapest_zone_first

import future.keywords.not

import data.extend.placement.cheapest_zone_first.zones

# METADATA
# title: By price
# description: A subset of several zones costs what the dearest of them does. One without a price keeps the place it has.
# labels:
#   id: cheapest-zone-first.price
rank := {subset.name: max(costs) |
	some subset in input.subsets
	costs := prices(subset)
	count(costs) > 0
}

# METADATA
# title: Not all in one zone
# labels:
#   id: cheapest-zone-first.share
deny contains {
	"rule": "cheapest-zone-first.share",
	"reason": "TooMuchInOneZone",
	"message": sprintf("No zone gets more than %d %% of the pods, which are %d.", [round(zones.share * 100), room]),
	"target": subset.name,
	"room": room,
} if {
	count(input.subsets) > 1
	some subset in input.subsets
	count(prices(subset)) > 0
	room := ceil(input.replicas * zones.share)
}

prices(subset) := [zones.prices[zone] | some zone in subset.nodes[zones.label]]
