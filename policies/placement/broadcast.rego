package placement

import future.keywords.not

# METADATA
# scope: document
# title: Which nodes get their pod next
# description: |
#   Which of the nodes that wait get the pod of a BroadcastJob now (BJ-05), in which order,
#   and who holds it. Go takes as many of them as parallelism has room for.
# entrypoint: true
# labels:
#   id: placement.broadcast.no-facts
default broadcast := {
	"nodes": [],
	"holds": [{
		"rule": "placement.broadcast.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of this job are not complete, so no pod is created.",
	}],
	"denials": [],
}

# METADATA
# title: All that wait
# description: In the order of their names, or as `rank` of users has it.
# labels:
#   id: placement.broadcast
broadcast := {
	"nodes": ranked([node.name | some node in input.nodes; node.state == "Waiting"]),
	"holds": [hold | some hold in user_target_hold],
	"denials": [deny | some deny in user_deny],
} if {
	is_string(input.job.name)
	is_array(input.nodes)
}
