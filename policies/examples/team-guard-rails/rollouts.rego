# METADATA
# title: Guard rails for rollouts of a team
# description: No more pods of a workload at a time than the team can bear.
package extend.rollout.team_guard_rails

import future.keywords.not

# Edit this.
pods_at_a_time := 2

# METADATA
# title: The strategy allows too many
# description: What a percentage comes to is a fact, so it is compared as pods.
# labels:
#   id: team-guard-rails.strategy
hold contains {
	"rule": "team-guard-rails.strategy",
	"reason": "TooManyAtATime",
	"message": sprintf("%s %s/%s may have %d pods unavailable at a time, and in this namespace %d is the most. Lower maxUnavailable of its update strategy.", [input.workload.kind, input.workload.namespace, input.workload.name, input.strategy.maxUnavailable, pods_at_a_time]),
} if {
	disrupts
	input.strategy.maxUnavailable > pods_at_a_time
}

# METADATA
# title: Too many are unavailable
# description: For whatever reason; no more are added to them.
# labels:
#   id: team-guard-rails.unavailable
hold contains {
	"rule": "team-guard-rails.unavailable",
	"reason": "TooManyUnavailable",
	"message": sprintf("%s %s/%s has %d or more pods unavailable, so none is added to them.", [input.workload.kind, input.workload.namespace, input.workload.name, pods_at_a_time]),
} if {
	disrupts
	input.counts.unavailable >= pods_at_a_time
}

# A rollout back heals, so it is not held.
disrupts if {
	input.update > 0
	not rolls_back
}

# Pods go back to the current revision, by a higher partition with the feature gate CloneSetPartitionRollback.
rolls_back if input.update < 0

# A user applied the old template again before all pods of a CloneSet had the new revision. During a restart, and for
# pods that a WorkloadSpread deletes, the revisions are equal too, so these are left out: the WorkloadSpread counts no
# updated pod. For other kinds no fact shows a rollout back by the old template. Their revisions can be equal in any
# rollout, for example while claims grow, after pods are adopted, or while the status names no current revision.
rolls_back if {
	input.workload.kind == "CloneSet"
	input.revisions.update == input.revisions.current
	input.counts.updated > 0
	not input.restart
}
