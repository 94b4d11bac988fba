package node

import future.keywords.not

# METADATA
# scope: document
# title: How many nodes begin to pull an image now
# description: |
#   How many of the nodes of an ImagePullJob that wait begin now (IMG-03), and who holds or
#   refuses it.
# entrypoint: true
# labels:
#   id: node.images.no-facts
default images := {
	"begin": 0,
	"holds": [{
		"rule": "node.images.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of this job are not complete, so no node begins to pull.",
	}],
	"denials": [],
}

# METADATA
# title: As many as the parallelism leaves
# description: All that are free, which is the parallelism less the nodes that pull.
# labels:
#   id: node.images
images := {
	"begin": input.free,
	"holds": [hold | some hold in user_hold_images; not hold.node],
	"denials": [deny | some deny in user_deny; not deny.container; not deny.node],
} if {
	is_string(input.job.name)
	is_number(input.free)
}
