package rollout

import future.keywords.not

# METADATA
# scope: document
# title: How many pods are created or deleted now
# description: |
#   What is missing is created as far as scaleStrategy.maxUnavailable allows; what
#   is too many is deleted, and only when nothing is missing and no other deletion
#   is under way (CS-04 to CS-07). The numbers are facts, and a clamp
#   in Go sees to it that no policy goes beyond them.
# entrypoint: true
# labels:
#   id: rollout.scale.no-facts
default scale := {
	"create": 0,
	"createCurrent": 0,
	"delete": 0,
	"deleteCurrent": 0,
	"keep": [],
	"planned": "None",
	"keys": [],
	"then": [],
	"descending": [],
	"holds": [{
		"rule": "rollout.scale.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of this workload are not complete, so no pod is created and none is deleted.",
	}],
}

# METADATA
# title: Create
# description: Pods are missing. Of those created the first are of the current revision (CS-05).
# labels:
#   id: rollout.scale.create
scale := {
	"create": scale_create,
	"createCurrent": max([0, min([scale_create, scale_up_current])]),
	"delete": 0,
	"deleteCurrent": 0,
	"keep": scale_keep,
	"planned": scale_planned,
	"keys": [],
	"then": [],
	"descending": [],
	"holds": [hold | some hold in scale_hold],
} if {
	input.up > 0
}

# METADATA
# title: Delete
# description: Nothing is missing. Of those deleted the first are of the current revision.
# labels:
#   id: rollout.scale.delete
scale := {
	"create": 0,
	"createCurrent": 0,
	"delete": scale_delete,
	"deleteCurrent": max([0, min([scale_delete, input.downCurrent])]),
	"keep": scale_keep,
	"planned": scale_planned,
	"keys": scale_keys,
	"then": scale_then,
	"descending": [5, 6, 7],
	"holds": [hold | some hold in scale_hold],
} if {
	input.up <= 0
}

scale_create := max([0, min([scale_up, scale_create_limit])])

scale_up := min([input.up, input.upWithoutSurge]) if {
	input.updateHeld
} else := input.up

scale_up_current := min([input.upCurrent, input.upCurrentWithoutSurge]) if {
	input.updateHeld
} else := input.upCurrent

scale_create_limit := max([0, input.strategy.scaleMaxUnavailable - input.totalUnavailable])

scale_delete := max([0, input.down]) if input.plannedDeletes == 0

scale_delete := 0 if input.plannedDeletes > 0

# METADATA
# title: Pods that come back
# description: |
#   Pods that prepare their deletion and are needed after all, in their order. One that
#   a hook had marked not ready does not come back: its mark would stay on it (CS-03).
# labels:
#   id: rollout.scale.keep
scale_keep := [pod.name | some pod in input.preparing; not pod.markedNotReady] if {
	input.needed > 0
} else := []

# METADATA
# title: Planned deletions
# description: |
#   While pods are created none is deleted. Where creation is limited, pods that prepared
#   their deletion go all the same: they count as unavailable, so those that replace them
#   could wait for them indefinitely. Missing pods that wait for the end of a terminating pod
#   are no reason to wait (CS-04).
# labels:
#   id: rollout.scale.planned
scale_planned := "All" if {
	input.up <= 0
} else := "All" if {
	scale_create > 0
	scale_up <= input.awaited
} else := "None" if {
	scale_create > 0
} else := "Prepared"

# METADATA
# title: The order of victims
# description: |
#   Unassigned, pending, not available, not ready, of lower deletion cost. Go then
#   compares how well a pod spreads the workload; what is equal so far goes on to
#   ready for a shorter time, restarted more often, newer (CS-07).
# labels:
#   id: rollout.scale.victims
scale_keys := [[pod.assigned, pod.phase, pod.available, pod.ready, pod.deletionCost] | some pod in input.pods] if {
	scale_delete > 0
	not scale_numbered
}

# METADATA
# title: The highest ordinal first
# description: Of kinds that number their pods (ASTS-07).
# labels:
#   id: rollout.scale.highest-ordinal
scale_keys := [[0 - pod.ordinal, 0, 0, 0, 0] | some pod in input.pods] if {
	scale_delete > 0
	scale_numbered
}

scale_keys := [] if not scale_delete > 0

scale_numbered if is_number(input.pods[0].ordinal)

scale_then := [[pod.readySince, pod.restarts, pod.created] | some pod in input.pods] if {
	scale_delete > 0
} else := []

# METADATA
# title: Too many unavailable pods to create more
# description: Users know the words of the message from the event.
# labels:
#   id: rollout.scale.up-limited
scale_hold contains {
	"rule": "rollout.scale.up-limited",
	"reason": "ScaleUpLimited",
	"message": sprintf("scaleUp is limited because of scaleStrategy.maxUnavailable, limit: %d", [scale_create_limit]),
} if {
	scale_up > scale_create_limit
}

# METADATA
# title: No surge while the update is held
# description: |
#   Pods beyond the replicas would be of the revision that is held. A paused update has
#   none either (A-11). Surge pods that are there stay.
# labels:
#   id: rollout.scale.surge-held
scale_hold contains {
	"rule": "rollout.scale.surge-held",
	"reason": "SurgeHeld",
	"message": sprintf("The update of %s %s/%s is held, so no pods are created beyond its replicas (%d).", [input.workload.kind, input.workload.namespace, input.workload.name, input.up - scale_up]),
} if {
	input.updateHeld
	input.up > scale_up
}

# METADATA
# title: Create before deleting
# description: While pods are missing none is too many (CS-04).
# labels:
#   id: rollout.scale.up-first
scale_hold contains {
	"rule": "rollout.scale.up-first",
	"reason": "ScaleUpFirst",
	"message": sprintf("%s %s/%s is short of pods (%d), so it deletes none of those that are too many (%d).", [input.workload.kind, input.workload.namespace, input.workload.name, input.up, input.down]),
} if {
	input.up > 0
	input.down > 0
}

# METADATA
# title: Deletions under way
# description: A scale-in waits for pods whose deletion was asked for already.
# labels:
#   id: rollout.scale.planned-deletes
scale_hold contains {
	"rule": "rollout.scale.planned-deletes",
	"reason": "PlannedDeletesFirst",
	"message": sprintf("%s %s/%s waits until the pods whose deletion was asked for (%d) are gone before it deletes those that are too many (%d).", [input.workload.kind, input.workload.namespace, input.workload.name, input.plannedDeletes, input.down]),
} if {
	input.up <= 0
	input.down > 0
	input.plannedDeletes > 0
}
