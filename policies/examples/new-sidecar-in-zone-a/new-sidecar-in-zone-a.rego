# METADATA
# title: New sidecars in zone a
# description: |
#   A SidecarSet is upgraded in the pods of zone a first. Those of other zones wait until the
#   annotation shop.example/zone-a-passed of the SidecarSet names the revision.
package extend.rollout.new_sidecar_in_zone_a

import future.keywords.not

# Edit these.
first := "a"

passed := "shop.example/zone-a-passed"

# METADATA
# title: Another zone
# description: Pods that are on no node yet have no zone, and wait as well.
# labels:
#   id: new-sidecar-in-zone-a.elsewhere
hold contains {
	"rule": "new-sidecar-in-zone-a.elsewhere",
	"reason": "ZoneNotPassed",
	"message": sprintf("SidecarSet %s is upgraded in zone %s first, so pods in zone %s wait until the annotation %s is %s.", [input.workload.name, first, zone, passed, input.revisions.update]),
	"where": {"zone": zone},
} if {
	input.workload.kind == "SidecarSet"
	object.get(input.workload, ["annotations", passed], "") != input.revisions.update
	some zone, _ in input.groups.zone
	zone != first
}
