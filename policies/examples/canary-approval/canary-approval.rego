# METADATA
# title: Canary approval
# description: |
#   After the first pods of a new revision are updated, the rollout waits until they
#   are available and a user approves the revision by annotating the workload.
package extend.rollout.canary_approval

import future.keywords.not

annotation := "regatta.sh/approved-revision"

# METADATA
# title: Canaries are not available
# description: The soak is the workload's minReadySeconds, since a pod is available only after them.
# labels:
#   id: canary-approval.soaking
hold contains {
	"rule": "canary-approval.soaking",
	"reason": "CanarySoaking",
	"message": sprintf("%s %s/%s waits until the first pods of revision %s are available before it asks for approval.", [input.workload.kind, input.workload.namespace, input.workload.name, input.revisions.update]),
} if {
	waiting
	input.counts.updatedAvailable < input.counts.updated
}

# METADATA
# title: Canaries are not approved
# description: Everything is as it should be, and a person has the next word.
# labels:
#   id: canary-approval.approval
hold contains {
	"rule": "canary-approval.approval",
	"reason": "CanaryApproval",
	"message": sprintf("%s %s/%s waits for a person to approve revision %s by the annotation %s=%s.", [input.workload.kind, input.workload.namespace, input.workload.name, input.revisions.update, annotation, input.revisions.update]),
} if {
	waiting
	input.counts.updatedAvailable >= input.counts.updated
}

# A rollout back heals, so it does not wait. Before the first pod is updated there is nothing to approve.
waiting if {
	input.update > 0
	input.counts.updated > 0
	not rolls_back
	not input.workload.annotations[annotation] == input.revisions.update
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
