# METADATA
# title: Gold after the rest
# description: |
#   Pods with the label tier=gold are held until all others are updated and what is
#   updated is available. A hold cannot say so, since rollout/rank sees each pod by
#   itself; rollout/rows sees all candidates, and costs more for it.
package override.rollout

import future.keywords.not

# METADATA
# title: The candidates that may go
# description: Those that are not named are held. The order is the one that rank gave.
# entrypoint: true
# labels:
#   id: gold-after-the-rest.rows
default rows := {"order": []}

# METADATA
# title: The rest
# description: While there are candidates that are not gold, they alone may go.
# labels:
#   id: gold-after-the-rest.rest
rows := {"order": rest} if {
	not rolls_back
	count(rest) > 0
}

# METADATA
# title: Gold
# description: Nothing but gold is left, and every updated pod is available.
# labels:
#   id: gold-after-the-rest.gold
rows := {"order": all} if {
	not rolls_back
	count(rest) == 0
	input.plan.counts.updatedAvailable == input.plan.counts.updated
}

# METADATA
# title: Back
# description: A rollout back is not held, because it heals.
# labels:
#   id: gold-after-the-rest.back
rows := {"order": all} if rolls_back

# Pods go back to the current revision, by a higher partition with the feature gate CloneSetPartitionRollback.
rolls_back if input.plan.update < 0

# A user applied the old template again before all pods of a CloneSet had the new revision. During a restart, and while
# the status names no current revision, the revisions are equal too, so a restart and a rollout without an updated pod
# are left out. For other kinds no fact shows a rollout back by the old template. Their revisions can be equal in any
# rollout, for example while claims grow, or after pods are adopted.
rolls_back if {
	input.plan.workload.kind == "CloneSet"
	input.plan.revisions.update == input.plan.revisions.current
	input.plan.counts.updated > 0
	not input.plan.restart
}

all := [pod.name | some pod in input.rows]

rest := [pod.name |
	some pod in input.rows
	not pod.labels.tier == "gold"
]
