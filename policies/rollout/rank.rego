package rollout

import future.keywords.not

# METADATA
# scope: document
# title: The order of pods
# description: |
#   A key for each pod, in the order of input.pods (CS-09: A-13, then
#   A-14; Go scatters by A-15 between keys and lead). Asked in batches of
#   thousands, so nothing here costs more for a pod than a few look-ups.
# entrypoint: true
# labels:
#   id: rollout.rank.no-facts
default rank := {"keys": [], "descending": [], "lead": [], "holds": []}

# METADATA
# title: By the strategy, then by how little is lost
# description: Keys compare the lower first, but for the positions that descend.
# labels:
#   id: rollout.rank
rank := {
	"keys": rank_keys,
	"descending": rank_descending,
	"lead": rank_lead,
	"holds": rank_holds,
} if {
	is_object(input.strategy)
}

rank_by := "ordinal" if {
	input.strategy.ordered
} else := "node" if {
	rank_kind == "node"
} else := concat("-", ["weight", rank_kind]) if {
	is_number(input.strategy.weights[0])
} else := concat("-", ["order", rank_kind]) if {
	is_string(input.strategy.orderKeys[0])
} else := "default" if {
	rank_kind == "state"
} else := rank_kind

rank_kind := "ordinal" if {
	is_number(input.pods[0].ordinal)
} else := "node" if {
	input.workload.kind == "DaemonSet"
} else := "state"

# METADATA
# title: Default order
# description: |
#   Unassigned, pending, not ready, ready for a shorter time, restarted more
#   often, newer (A-13).
# labels:
#   id: rollout.rank.default
rank_keys := [[pod.assigned, pod.phase, pod.ready, pod.readySince, pod.restarts, pod.created] |
	some pod in input.pods
] if {
	rank_by == "default"
}

# METADATA
# title: By ordinal
# description: The highest first, of kinds that number their pods (ASTS-11).
# labels:
#   id: rollout.rank.ordinal
rank_keys := [[object.get(pod, "ordinal", 0)] | some pod in input.pods] if {
	rank_by == "ordinal"
}

# METADATA
# title: By node
# description: |
#   Of kinds that have a pod on each node, as the pods are given: by the names of the
#   nodes, descending (ADS-08).
# labels:
#   id: rollout.rank.node
rank_keys := [[0] | some _ in input.pods] if {
	rank_by == "node"
}

# METADATA
# title: By weight
# description: The sum of the weights of the terms that select the pod, the highest first (A-14).
# labels:
#   id: rollout.rank.weight
rank_keys := [[weight, pod.assigned, pod.phase, pod.ready, pod.readySince, pod.restarts, pod.created] |
	some pod in input.pods
	weight := sum([input.strategy.weights[term] | some term in pod.matches])
] if {
	rank_by == "weight-state"
}

# METADATA
# title: By weight, then by ordinal
# description: The sum of the weights of the terms that select the pod, the highest first (A-14).
# labels:
#   id: rollout.rank.weight-ordinal
rank_keys := [[weight, pod.ordinal] |
	some pod in input.pods
	weight := sum([input.strategy.weights[term] | some term in pod.matches])
] if {
	rank_by == "weight-ordinal"
}

# METADATA
# title: By order
# description: |
#   The first key that the pod has, pods without any before all others; then the
#   number its value ends with, the highest first (A-14).
# labels:
#   id: rollout.rank.order
rank_keys := [[pod.orderLevel, pod.orderValue, pod.assigned, pod.phase, pod.ready, pod.readySince, pod.restarts, pod.created] |
	some pod in input.pods
] if {
	rank_by == "order-state"
}

# METADATA
# title: By order, then by ordinal
# description: |
#   The first key that the pod has, pods without any before all others; then the
#   number its value ends with, the highest first (A-14).
# labels:
#   id: rollout.rank.order-ordinal
rank_keys := [[pod.orderLevel, pod.orderValue, pod.ordinal] | some pod in input.pods] if {
	rank_by == "order-ordinal"
}

rank_descending := {
	"default": [3, 4, 5], "weight-state": [0, 4, 5, 6], "order-state": [1, 5, 6, 7],
	"ordinal": [0], "node": [], "weight-ordinal": [0, 1], "order-ordinal": [1, 2],
}[rank_by]

# METADATA
# title: First and last
# description: |
#   Pods that prepare for their update go first (CS-09), whatever the order is.
#   Then `rank` of each package data.extend.rollout.<package> has its say, in the
#   order of the package names; a pod it does not name has 0. A name with a
#   namespace, such as shop/web-0, goes ahead of one without, which is that of a pod
#   in each namespace.
# labels:
#   id: rollout.rank.lead
rank_lead := [usual | some _ in input.pods] if {
	every column in rank_columns {
		count(column) == 0
	}
	usual := [0 | some _ in rank_columns]
} else := [[object.get(column, name, object.get(column, pod.name, 0)) | some column in rank_columns] |
	some pod in input.pods
	name := object.get(pod, "namespacedName", pod.name)
]

rank_columns := array.concat([rank_preparing], [places | some places in rank_users])

rank_preparing := {name: -1 |
	some pod in input.pods
	pod.state == "PreparingUpdate"
	name := object.get(pod, "namespacedName", pod.name)
}

# An object, because its values come in the order of its keys.
rank_users := {pkg: places |
	some pkg
	wishes := data.extend.rollout[pkg].rank
	places := {pod: place | some pod, place in wishes; is_number(place)}
}

# METADATA
# title: Pods that users hold
# description: |
#   Only holds that name a pod. The others are for rollout/plan, which knows the
#   time and the counts: here a rule such as "not all are available" would hold
#   every pod just because nothing is known, and be remembered. One that is
#   malformed holds all that it could. One without a namespace holds each pod of the name.
# labels:
#   id: rollout.rank.hold
rank_holds := [object.union(hold, {"pod": name}) |
	some hold in user_hold
	some name in rank_held_by(hold)
] if {
	count(user_hold) > 0
} else := []

rank_held_by(hold) := rank_held_in(hold) if {
	hold.namespace
} else := rank_names if {
	hold.reason == "InvalidHold"
	object.get(hold, "pod", "") == ""
} else := {hold.pod} & rank_names

rank_held_in(hold) := {name | some [hold.namespace, name] in rank_pods} if {
	hold.reason == "InvalidHold"
	object.get(hold, "pod", "") == ""
} else := {name | name := hold.pod; [hold.namespace, name] in rank_pods}

rank_names := {pod.name | some pod in input.pods}

rank_pods := {[pod.namespace, pod.name] | some pod in input.pods}
