package node

import future.keywords.not

# METADATA
# scope: document
# title: The order of nodes
# description: |
#   A key for each node that waits to pull an image, in the order of input.nodes. Asked in
#   batches of a thousand, so nothing here costs more for a node than a few look-ups.
# entrypoint: true
# labels:
#   id: node.rank.no-facts
default rank := {"keys": [], "holds": [], "denials": []}

# METADATA
# title: By what users rank, then by name
# description: |
#   `rank` of each package data.extend.node.<package> has its say, in the order of the
#   package names; the lower goes first, and a node it does not name has 0. Nodes of equal
#   keys go by name (IMG-03).
# labels:
#   id: node.rank
rank := {
	"keys": rank_keys,
	"holds": rank_holds,
	"denials": [deny | some deny in user_deny; not deny.container; deny.node in rank_names],
} if {
	is_string(input.job.name)
	is_array(input.nodes)
}

rank_keys := [[] | some _ in input.nodes] if {
	count(rank_columns) == 0
} else := [[object.get(column, node.name, 0) | some column in rank_columns] | some node in input.nodes]

# The values of an object come in the order of its keys.
rank_columns := [places | some places in rank_users]

rank_users := {pkg: places |
	some pkg
	wishes := data.extend.node[pkg].rank
	places := {node: place | some node, place in wishes; is_number(place)}
}

# METADATA
# title: Nodes that users hold
# description: |
#   Only holds that name a node. The others are for node/images, which knows the time and
#   the counts. One that is malformed holds all that it could.
# labels:
#   id: node.rank.hold
rank_holds := [object.union(hold, {"node": name}) |
	some hold in user_hold_images
	some name in rank_held_by(hold)
]

rank_held_by(hold) := rank_names if {
	hold.reason == "InvalidHold"
	not hold.node
} else := {hold.node} & rank_names

rank_names := {node.name | some node in input.nodes}
