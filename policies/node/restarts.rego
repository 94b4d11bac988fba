package node

import future.keywords.not

# METADATA
# scope: document
# title: Which containers are restarted now
# description: |
#   Which containers of a ContainerRecreateRequest the node may stop (CRR-09), and who
#   holds or refuses it.
# entrypoint: true
# labels:
#   id: node.restarts.no-facts
default restarts := {
	"restart": [],
	"holds": [{
		"rule": "node.restarts.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of this restart are not complete, so no container is stopped.",
	}],
	"denials": [],
}

# METADATA
# title: Those that wait
# description: All that wait, in the order of the request; with orderedRecreate the first of them, once those before it have ended.
# labels:
#   id: node.restarts
restarts := {
	"restart": restarts_now,
	"charge": restarts_charged,
	"holds": [hold | some hold in user_hold],
	"denials": [deny | some deny in restarts_denials],
} if {
	is_string(input.request.name)
	is_array(input.containers)
}

# METADATA
# title: A liveness probe that failed
# description: |
#   Its restart takes one of the pods that the budget allows to be unavailable, so that a
#   probe that fails everywhere does not restart all pods of a service at once.
# labels:
#   id: node.restarts.liveness
restarts_charged if input.request.labels["crr.regatta.sh/liveness"]

default restarts_charged := false

restarts_now := [] if restarts_failed

restarts_now := [container.name | some container in restarts_waiting] if {
	not restarts_failed
	not input.request.ordered
}

restarts_now := [container.name |
	some i, container in input.containers
	container in restarts_waiting
	every before in array.slice(input.containers, 0, i) {
		before.phase in {"Succeeded", "Failed"}
	}
] if {
	not restarts_failed
	input.request.ordered
}

restarts_waiting := [container |
	some container in input.containers
	container.phase == "Pending"
	container.found
	not container.permitted
]

# METADATA
# title: One has failed
# description: With the failure policy Fail, one container that could not be stopped ends the request.
# labels:
#   id: node.restarts.failed
restarts_failed if {
	input.request.failFast
	some container in input.containers
	container.phase == "Failed"
}

# A denial that names another node is of its images.
restarts_denials contains object.remove(deny, ["node"]) if {
	some deny in user_deny
	not restarts_elsewhere(deny)
}

restarts_elsewhere(deny) if deny.node != input.pod.node
