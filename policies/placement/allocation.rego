package placement

import future.keywords.not

# METADATA
# scope: document
# title: How many pods each subset gets
# description: |
#   How many pods each subset of a UnitedDeployment gets (UD-02 to UD-05), and who holds or
#   denies it. Go keeps each subset within its numbers and the sum at the replicas.
# entrypoint: true
# labels:
#   id: placement.allocation.no-facts
default allocation := {
	"subsets": [],
	"holds": [{
		"rule": "placement.allocation.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of this UnitedDeployment are not complete, so all subsets stay as they are.",
	}],
	"denials": [],
}

# METADATA
# title: By the strategy
# description: |
#   Fixed gives subsets their own numbers, or even shares; the other strategies fill them in
#   their order. A subset that is held keeps what it has.
# labels:
#   id: placement.allocation
allocation := {
	"subsets": [{"name": subset.name, "replicas": allocation_counts[subset.name], "rule": allocation_rule(subset)} |
		some subset in input.subsets
	],
	"holds": [hold | some hold in allocation_holds],
	"denials": [deny | some deny in user_room_deny],
} if {
	is_string(input.deployment.name)
	is_array(input.subsets)
	count(allocation_ineffective) == 0
} else := {"subsets": [], "holds": [hold | some hold in allocation_holds], "denials": [deny | some deny in user_room_deny]} if {
	is_string(input.deployment.name)
	is_array(input.subsets)
}

allocation_holds := user_target_hold | allocation_ineffective

allocation_counts := allocation_fixed if {
	input.strategy == "Fixed"
} else := allocation_filled

allocation_rule(subset) := "placement.allocation.held" if {
	subset.name in allocation_held
} else := "placement.allocation.denied" if {
	allocation_room[subset.name] <= allocation_counts[subset.name]
} else := "placement.allocation.given" if {
	input.strategy == "Fixed"
	subset.given >= 0
} else := "placement.allocation.share" if {
	input.strategy == "Fixed"
} else := "placement.allocation.unschedulable" if {
	allocation_full(subset)
} else := "placement.allocation.limits"

# METADATA
# title: What a hold leaves as it is
# description: The subset keeps the pods that its workload has, and the others share the rest.
# labels:
#   id: placement.allocation.held
allocation_held := {subset.name |
	some subset in input.subsets
	some hold in user_target_hold
	hold.target == subset.name
}

# METADATA
# title: What a denial leaves room for
# description: |
#   A subset that is denied gets no pods, or as many as the least `room` says; the others get
#   the rest.
# labels:
#   id: placement.allocation.denied
allocation_room[subset.name] := min(rooms) if {
	some subset in input.subsets
	rooms := [object.get(deny, "room", 0) |
		some deny in user_room_deny
		object.get(deny, "target", subset.name) == subset.name
	]
	count(rooms) > 0
}

# No subset gets more than all replicas.
allocation_cap(subset, most) := min([most, object.get(allocation_room, subset.name, most)])

allocation_places(subset) := [object.get(column, subset.name, 0) | some column in user_columns]

# METADATA
# title: Subsets that have a number of their own
# labels:
#   id: placement.allocation.given
allocation_given := {subset.name: pods | some subset in input.subsets; pods := allocation_own(subset)}

allocation_own(subset) := subset.current if {
	subset.name in allocation_held
} else := allocation_cap(subset, subset.given)

# METADATA
# title: Even shares
# description: |
#   Subsets without a number share what is left evenly. What cannot be shared goes to those
#   that have the most pods, one each, or to those that `rank` of users puts first.
# labels:
#   id: placement.allocation.share
allocation_fixed := object.union(allocation_given, allocation_shares) if {
	is_number(input.replicas)
} else := allocation_given

allocation_shares := object.union(tight, allocation_even(allocation_open - object.keys(tight), max([0, rest - sum([pods | some pods in tight])]))) if {
	rest := max([0, input.replicas - sum([pods | some pods in allocation_given])])
	shares := allocation_even(allocation_open, rest)
	tight := {name: allocation_room[name] |
		some name, share in shares
		allocation_room[name] < share
	}
}

allocation_open := {subset.name | some subset in input.subsets; not allocation_given[subset.name] >= 0}

allocation_even(names, rest) := {key[2]: share |
	keys := sort([[[back | some place in allocation_places(subset); back := 0 - place], subset.current, subset.name] |
		some subset in input.subsets
		subset.name in names
	])
	some i, key in keys
	share := floor(rest / count(keys)) + allocation_remainder(rest % count(keys), count(keys) - i)
}

allocation_remainder(rest, from_the_end) := 1 if {
	from_the_end <= rest
} else := 0

# METADATA
# title: Numbers that contradict each other
# description: Admission refuses them; they were stored before it did, or without it.
# labels:
#   id: placement.allocation.ineffective
allocation_ineffective contains allocation_contradiction(sprintf("specified subsets' replica (%d) is greater than UnitedDeployment replica (%d)", [given, input.replicas])) if {
	input.strategy == "Fixed"
	given := sum([subset.given | some subset in input.subsets])
	given > input.replicas
}

allocation_ineffective contains allocation_contradiction(sprintf("specified subsets' replica (%d) is less than UnitedDeployment replica (%d)", [given, input.replicas])) if {
	input.strategy == "Fixed"
	count(input.subsets) > 0
	every subset in input.subsets {
		subset.given >= 0
	}
	given := sum([subset.given | some subset in input.subsets])
	given < input.replicas
}

allocation_ineffective contains allocation_contradiction("spec.replicas must be set where not all subsets have replicas") if {
	not input.replicas >= 0
	some subset in input.subsets
	not subset.given >= 0
}

allocation_ineffective contains allocation_contradiction("spec.replicas must be set where subsets have minReplicas or maxReplicas") if {
	not input.replicas >= 0
	input.strategy != "Fixed"
}

allocation_ineffective contains allocation_contradiction(sprintf("subset %s has minReplicas (%d) greater than maxReplicas (%d)", [subset.name, subset.min, subset.max])) if {
	input.strategy != "Fixed"
	some subset in input.subsets
	subset.min > subset.max
}

allocation_contradiction(message) := {"rule": "placement.allocation.ineffective", "reason": "Ineffective", "message": message}

# METADATA
# title: In order, between least and most
# description: |
#   Each subset first gets its least, then up to its most, in the order of the spec or as
#   `rank` of users has it, as far as the replicas last.
# labels:
#   id: placement.allocation.limits
allocation_filled := {subset.name: allocation_total(i) |
	is_number(input.replicas)
	some i, subset in allocation_ranked
}

allocation_total(i) := sum([allocation_stays(i), allocation_second[i], allocation_third[i], allocation_fourth[i]])

allocation_stays(i) := sum([allocation_first[i], allocation_kept[i], allocation_waits[i]])

# What they are to have at least.
allocation_first := allocation_served(input.replicas, [least | some subset in allocation_ranked; least := allocation_least(subset)], allocation_first_charges)

allocation_first_charges := [min([allocation_least(subset), allocation_quota(subset)]) | some subset in allocation_ranked]

allocation_first_left := allocation_left(input.replicas, allocation_first_charges)

# What runs already.
allocation_kept := allocation_served(allocation_first_left, allocation_kept_wants, allocation_kept_wants)

allocation_kept_wants := [max([0, allocation_running(subset) - allocation_first[i]]) | some i, subset in allocation_ranked]

allocation_kept_left := allocation_left(allocation_first_left, allocation_kept_wants)

# What waits where pods may find a node still. A pod that another subset could take as soon as it
# may have room again would go to and fro.
allocation_waits := allocation_served(allocation_kept_left, allocation_waits_wants, allocation_waits_wants)

allocation_waits_wants := [max([0, allocation_waiting(subset) - sum([allocation_first[i], allocation_kept[i]])]) |
	some i, subset in allocation_ranked
]

allocation_waits_left := allocation_left(allocation_kept_left, allocation_waits_wants)

# Up to what they may have.
allocation_second := allocation_served(allocation_waits_left, allocation_second_wants, allocation_second_charges)

allocation_second_wants := [max([0, allocation_high(subset) - allocation_stays(i)]) |
	some i, subset in allocation_ranked
]

allocation_second_charges := [min([allocation_second_wants[i], max([0, allocation_quota(subset) - allocation_stays(i)])]) |
	some i, subset in allocation_ranked
]

allocation_second_left := allocation_left(allocation_waits_left, allocation_second_charges)

# What no subset has room for stays where it is, and else goes to the first.
allocation_third := allocation_served(allocation_second_left, allocation_third_wants, allocation_third_wants)

allocation_third_wants := [max([0, min([subset.current, allocation_top(subset)]) - sum([allocation_stays(i), allocation_second[i]])]) |
	some i, subset in allocation_ranked
]

allocation_fourth := allocation_served(allocation_left(allocation_second_left, allocation_third_wants), wants, wants) if {
	wants := [max([0, allocation_top(subset) - sum([allocation_stays(i), allocation_second[i], allocation_third[i]])]) |
		some i, subset in allocation_ranked
	]
}

allocation_ranked := [input.subsets[key[1]] |
	some key in sort([[allocation_places(subset), i] | some i, subset in input.subsets])
]

# What each of some wants gets of a rest, the first of them first. What it gets is charged up
# to its charge.
allocation_served(rest, wants, charges) := [min([want, max([0, rest - sum(array.slice(charges, 0, i))])]) | some i, want in wants]

allocation_left(rest, charges) := max([0, rest - sum(charges)])

# METADATA
# title: Subsets without room
# description: |
#   Adaptive: a subset whose pods find no node keeps those that have one, and gets no more
#   while another subset can have them. One that has room keeps those that have a node.
#   Reserve: it keeps all its pods, and others stand in for those that wait.
# labels:
#   id: placement.allocation.unschedulable
allocation_full(subset) if {
	input.strategy in {"Adaptive", "Reserve"}
	subset.unschedulable
	subset.exists
}

# Pods beyond what the workload is to have are about to go, even if they find a node just before.
allocation_on_nodes(subset) := min([subset.current, max([subset.ready, subset.placed])])

allocation_most(subset) := allocation_cap(subset, min([input.replicas, object.get(subset, "max", input.replicas)]))

allocation_least(subset) := subset.current if {
	subset.name in allocation_held
} else := allocation_cap(subset, subset.min)

allocation_running(subset) := 0 if {
	input.strategy != "Adaptive"
} else := 0 if {
	subset.name in allocation_held
} else := min([allocation_on_nodes(subset), allocation_most(subset)])

allocation_waiting(subset) := 0 if {
	input.strategy != "Adaptive"
} else := 0 if {
	subset.name in allocation_held
} else := 0 if {
	allocation_full(subset)
} else := min([subset.current, allocation_most(subset)])

allocation_high(subset) := subset.current if {
	subset.name in allocation_held
} else := min([allocation_on_nodes(subset), allocation_most(subset)]) if {
	input.strategy == "Adaptive"
	allocation_full(subset)
} else := min([subset.current, allocation_most(subset)]) if {
	input.strategy == "Reserve"
	allocation_full(subset)
} else := allocation_most(subset)

# Where no subset has room for all, pods wait where they are: none is deleted for nothing.
allocation_top(subset) := 0 if {
	input.strategy != "Adaptive"
} else := subset.current if {
	subset.name in allocation_held
} else := allocation_most(subset)

# How many pods of a subset count: others stand in for the rest.
allocation_quota(subset) := max([0, subset.current - subset.reserved]) if {
	input.strategy == "Reserve"
	subset.exists
	allocation_doubtful(subset)
} else := 1000000000

allocation_doubtful(subset) if subset.unschedulable

allocation_doubtful(subset) if subset.marked
