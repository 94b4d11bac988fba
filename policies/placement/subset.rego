package placement

import future.keywords.not

# METADATA
# scope: document
# title: Which subset a new pod goes to
# description: |
#   Which subset of a WorkloadSpread a pod that is created goes to (WS-02, WS-03), and who
#   keeps it out of one. A pod that goes to none is created as it is.
# entrypoint: true
# labels:
#   id: placement.subset.no-facts
default subset := {
	"subset": "",
	"holds": [{
		"rule": "placement.subset.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of this pod are not complete, so it is created as it is.",
	}],
	"denials": [],
}

# METADATA
# title: The first that has room
# description: |
#   In the order of the spec, or as `rank` of users has it: the first subset that is not
#   marked unschedulable, has fewer pods than it may have, and that no rule keeps the pod out
#   of.
# labels:
#   id: placement.subset
subset := {
	"subset": subset_first,
	"holds": [hold | some hold in user_target_hold],
	"denials": [deny | some deny in user_room_deny],
} if {
	is_string(input.spread.name)
	is_array(input.subsets)
}

subset_first := subset_open[0] if {
	count(subset_open) > 0
} else := ""

subset_open := [part.name |
	some key in sort([[places, i] | some i, part in input.subsets; places := [object.get(column, part.name, 0) | some column in user_columns]])
	part := input.subsets[key[1]]
	not part.unschedulable
	subset_room(part, key[1])
	not subset_kept_out(part)
]

subset_room(part, _) if not part.max >= 0

subset_room(part, _) if {
	not input.pod.ordinal >= 0
	part.pods < part.max
}

# METADATA
# title: Ordinals of StatefulSets
# description: |
#   The pods of a StatefulSet go by their ordinals: as many as the subsets up to this one may
#   have. A subset that is marked unschedulable has none of them.
# labels:
#   id: placement.subset.ordinal
subset_room(_, i) if {
	below := sum([part.max | some j, part in input.subsets; j <= i; not part.unschedulable])
	input.pod.ordinal < below
}

# METADATA
# title: What rules of users keep out
# description: A hold or a denial of a subset; a denial with `room` only when it has that many pods.
# labels:
#   id: placement.subset.kept-out
subset_kept_out(part) if {
	some hold in user_target_hold
	object.get(hold, "target", part.name) == part.name
}

subset_kept_out(part) if {
	some deny in user_room_deny
	object.get(deny, "target", part.name) == part.name
	part.pods >= object.get(deny, "room", 0)
}
