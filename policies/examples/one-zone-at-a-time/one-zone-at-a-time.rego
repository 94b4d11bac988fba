# METADATA
# title: One zone at a time
# description: |
#   Pods are updated zone by zone, in the order of the zones' names. The next zone
#   begins when all pods of the one before are updated and available.
package extend.rollout.one_zone_at_a_time

import future.keywords.not

# METADATA
# title: Another zone first
# description: Only pods of the first zone that is not done may be moved. Others wait for it.
# labels:
#   id: one-zone-at-a-time.other-zone
hold contains {
	"rule": "one-zone-at-a-time.other-zone",
	"reason": "OtherZoneFirst",
	"message": sprintf("%s %s/%s updates one zone at a time, so pods %s wait until all pods %s are updated and available.", [input.workload.kind, input.workload.namespace, input.workload.name, place(zone), place(first)]),
	"where": {"zone": zone},
} if {
	input.update != 0
	first := min(unfinished)
	some zone, _ in input.groups.zone
	zone != first
}

# METADATA
# title: Zones that are not done
# description: They have pods to move, in whichever direction, or pods that are not available.
# labels:
#   id: one-zone-at-a-time.unfinished
unfinished contains zone if {
	some zone, pods in input.groups.zone
	input.update > 0
	pods.updated < pods.total
}

unfinished contains zone if {
	some zone, pods in input.groups.zone
	input.update < 0
	pods.updated > 0
}

unfinished contains zone if {
	some zone, pods in input.groups.zone
	pods.unavailable > 0
}

# Pods that are on no node yet have no zone, and sort before all others.
place("") := "that are in no zone yet"

place(zone) := sprintf("in zone %s", [zone]) if zone != ""
