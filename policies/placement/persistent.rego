package placement

import future.keywords.not

# METADATA
# scope: document
# title: Where a pod comes back that is remembered
# description: |
#   The topology that a new pod asks for whose name a PersistentPodState remembers (PPS-04).
#   Go leaves out what is not remembered.
# entrypoint: true
# labels:
#   id: placement.persistent.no-facts
default persistent := {
	"nodeSelector": {},
	"preferred": [],
	"holds": [{
		"rule": "placement.persistent.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of this pod are not complete, so it asks for no topology.",
	}],
	"denials": [],
}

# METADATA
# title: Where it was
# description: |
#   The remembered values of the required keys, and a preferred term for each of the
#   PersistentPodState that has one. A required key that is not remembered is not required.
# labels:
#   id: placement.persistent
persistent := {
	"nodeSelector": persistent_values(input.required),
	"preferred": [{"weight": term.weight, "labels": labels} |
		some term in input.preferred
		term.weight > 0
		labels := persistent_values(term.keys)
		count(labels) > 0
	],
	"holds": [hold | some hold in user_target_hold],
	"denials": [deny | some deny in user_deny],
} if {
	persistent_facts
	persistent_binds
} else := {
	"nodeSelector": {},
	"preferred": [],
	"holds": [],
	"denials": [deny | some deny in user_deny],
} if {
	persistent_facts
}

persistent_facts if {
	is_string(input.pod.name)
	is_object(input.recorded.labels)
}

# Of a pod that rules deny, and that none holds, nothing is asked. What is about another pod
# does not count.
persistent_binds if count(user_target_hold) > 0

persistent_binds if {
	every deny in user_deny {
		not object.get(deny, "target", "") in {"", input.pod.name, input.recorded.node}
	}
}

persistent_values(keys) := {key: input.recorded.labels[key] | some key in keys}
