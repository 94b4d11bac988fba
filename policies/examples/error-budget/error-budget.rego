# METADATA
# title: Error budget
# description: |
#   A workload whose error budget is nearly spent is not updated. What is left is a
#   fact that a job keeps in an annotation; how much is needed is data.
package extend.rollout.error_budget

import future.keywords.not

import data.extend.rollout.error_budget.slo

# METADATA
# title: Too little is left
# description: The number is not in the message, since each new one would be an event.
# labels:
#   id: error-budget.spent
hold contains {
	"rule": "error-budget.spent",
	"reason": "ErrorBudgetSpent",
	"message": sprintf("%s has less than %d %% of its error budget left (annotation %s), so it is not updated.", [workload, round(slo.least * 100), slo.annotation]),
} if {
	disrupts
	is_fraction(left)
	to_number(left) < slo.least
}

# METADATA
# title: What is left is not known
# description: The annotation is there, so its author wants this, but it is no number from 0 to 1.
# labels:
#   id: error-budget.unknown
hold contains {
	"rule": "error-budget.unknown",
	"reason": "ErrorBudgetUnknown",
	"message": sprintf("%s has the annotation %s, which is no number from 0 to 1, so it is not updated. See to the job that writes it.", [workload, slo.annotation]),
} if {
	disrupts
	not is_fraction(left)
}

left := input.workload.annotations[slo.annotation]

# to_number of anything else would fail the decision.
is_fraction(text) if regex.match(`^(0(\.[0-9]{1,9})?|1(\.0{1,9})?)$`, text)

# A rollout back heals, so it needs no budget.
disrupts if {
	left
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

workload := sprintf("%s %s/%s", [input.workload.kind, input.workload.namespace, input.workload.name])
