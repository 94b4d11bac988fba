package placement

import future.keywords.not

# METADATA
# scope: document
# title: Which pods get the ephemeral containers next
# description: |
#   Which of the pods that wait get the containers of an EphemeralJob now (EJ-04), in which
#   order, and who holds it. Go takes as many of them as parallelism has room for.
# entrypoint: true
# labels:
#   id: placement.ephemeral.no-facts
default ephemeral := {
	"pods": [],
	"holds": [{
		"rule": "placement.ephemeral.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of this job are not complete, so no container is added.",
	}],
	"denials": [],
}

# METADATA
# title: All pods that wait
# description: The oldest first, those that were refused last, or as `rank` of users has it.
# labels:
#   id: placement.ephemeral
ephemeral := {
	"pods": ranked([place[2] | some place in sort(ephemeral_waiting)]),
	"holds": [hold | some hold in user_target_hold],
	"denials": [deny | some deny in user_deny],
} if {
	is_string(input.job.name)
	is_array(input.pods)
}

ephemeral_waiting := [[{true: 1, false: 0}[object.get(pod, "refused", false)], pod.created, pod.name] |
	some pod in input.pods
	pod.state == "Waiting"
]
