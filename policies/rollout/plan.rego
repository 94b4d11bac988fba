package rollout

import future.keywords.not

# METADATA
# scope: document
# title: How far a rollout goes now
# description: |
#   How many pods may be moved and how many may be unavailable meanwhile
#   (CS-01, CS-10), and who holds it (CS-12). The numbers are facts;
#   a policy only lowers them, and a clamp in Go sees to that.
# entrypoint: true
# labels:
#   id: rollout.plan.no-facts
default plan := {
	"limit": 0,
	"maxUnavailable": 0,
	"holds": [{
		"rule": "rollout.plan.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of this rollout are not complete, so nothing new is started.",
	}],
	"scatter": [],
}

# METADATA
# title: As far as the strategy allows
# description: Holds of users leave the numbers as they are; those of the strategy set the limit to 0.
# labels:
#   id: rollout.plan
plan := {
	"limit": plan_limit,
	"maxUnavailable": input.maxUnavailable,
	"holds": array.concat([hold | some hold in plan_strategy_hold], plan_user_holds),
	"scatter": object.get(input.strategy, "scatter", []),
	"unavailable": plan_unavailable,
}

# METADATA
# title: Pods that are unavailable already
# description: |
#   Those of a DaemonSet are replaced at once, and those of a SidecarSet updated, as far as
#   the partition lets them: nothing becomes unavailable by it (ADS-09, SS-15). Those of other
#   kinds wait for their turn.
# labels:
#   id: rollout.plan.unavailable
plan_unavailable := "Always" if {
	input.workload.kind in {"DaemonSet", "SidecarSet"}
} else := ""

plan_limit := abs(input.update) if count(plan_strategy_hold) == 0

plan_limit := 0 if count(plan_strategy_hold) > 0

plan_user_holds := [hold | some hold in user_hold]

# The workload as a message names it. A SidecarSet has no namespace.
plan_workload := sprintf("%s %s/%s", [input.workload.kind, input.workload.namespace, input.workload.name]) if {
	input.workload.namespace != ""
} else := sprintf("%s %s", [input.workload.kind, input.workload.name])

# METADATA
# title: Paused
# description: The strategy is paused. Scaling goes on.
# labels:
#   id: rollout.plan.paused
plan_strategy_hold contains {
	"rule": "rollout.plan.paused",
	"reason": "RolloutPaused",
	"message": sprintf("%s is paused by its update strategy, so none of its pods is updated.", [plan_workload]),
} if {
	input.strategy.paused
}

# METADATA
# title: On delete
# description: |
#   A pod gets the new template when it is deleted, and only then. Containers restart in place
#   where a user asks for that.
# labels:
#   id: rollout.plan.on-delete
plan_strategy_hold contains {
	"rule": "rollout.plan.on-delete",
	"reason": "OnDelete",
	"message": sprintf("%s has the update strategy OnDelete, so a pod is updated only when it is deleted.", [plan_workload]),
} if {
	input.strategy.type == "OnDelete"
	not input.restart
}

# METADATA
# title: No strategy that is known
# description: A strategy type that this policy does not know starts nothing.
# labels:
#   id: rollout.plan.unknown-strategy
plan_strategy_hold contains {
	"rule": "rollout.plan.unknown-strategy",
	"reason": "UnknownStrategy",
	"message": sprintf("%s has an update strategy that no rule knows, so none of its pods is updated.", [plan_workload]),
} if {
	not input.strategy.type in {"RollingUpdate", "OnDelete"}
}
