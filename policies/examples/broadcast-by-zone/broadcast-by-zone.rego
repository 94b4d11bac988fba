# METADATA
# title: Broadcast by zone
# description: |
#   A BroadcastJob goes through the zones one after the other, nodes labelled canary first,
#   and stops for all nodes when too many have failed.
package extend.placement.broadcast_by_zone

import future.keywords.not

# METADATA
# title: Wait for the zone before
# description: Zones go by their names. One is done when none of its nodes waits or runs a pod.
# labels:
#   id: broadcast-by-zone.zone
hold contains {
	"rule": "broadcast-by-zone.zone",
	"reason": "ZoneByZone",
	"message": sprintf("Nodes of zone %s wait for zone %s.", [zone(node), current]),
	"target": node.name,
} if {
	some node in input.nodes
	node.state == "Waiting"
	not zone(node) == current
}

# METADATA
# title: Too many nodes have failed
# description: More than a tenth of those that have ended, but at least three.
# labels:
#   id: broadcast-by-zone.failed
hold contains {
	"rule": "broadcast-by-zone.failed",
	"reason": "TooManyFailed",
	"message": sprintf("The job failed on %d of %d nodes, so no more of them get it. Delete the failed pods to go on.", [failed, failed + input.counts.succeeded]),
} if {
	failed >= 3
	failed * 10 > failed + input.counts.succeeded
}

failed := object.get(input.counts, "failed", 0)

# METADATA
# title: Canaries first
# labels:
#   id: broadcast-by-zone.canary
rank := {node.name: -1 | some node in input.nodes; node.labels.canary == "true"}

current := min({zone(node) | some node in input.nodes; node.state in {"Waiting", "Active"}})

zone(node) := object.get(object.get(node, "labels", {}), "topology.kubernetes.io/zone", "")
