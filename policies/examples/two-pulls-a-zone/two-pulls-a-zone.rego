# METADATA
# title: Two pulls a zone
# description: |
#   Not more than two nodes of a zone pull images for ImagePullJobs at once, whatever the
#   parallelism of the jobs, so that a zone's way to the registry stays free for pods.
package extend.node.two_pulls_a_zone

import future.keywords.not

# METADATA
# title: The zone is busy
# description: |
#   Nodes that pull for any job count. The others of the zone wait, and there is room
#   for as many as are missing to two. Jobs with the label urgent do not wait.
# labels:
#   id: two-pulls-a-zone.busy
hold contains {
	"rule": "two-pulls-a-zone.busy",
	"reason": "ZoneBusy",
	"message": sprintf("Nodes of zone %s wait to pull %s:%s: two nodes of a zone pull at once.", [zone, input.job.image, input.job.tag]),
	"where": {"zone": zone},
	"room": 2 - nodes.busy,
} if {
	not input.job.labels.urgent
	some zone, nodes in input.groups.zone
}
