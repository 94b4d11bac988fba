# METADATA
# title: Young nodes first
# description: |
#   Pods on the youngest nodes are updated first. A node that joined yesterday has the
#   newest image, kernel and kubelet, and no caches of months: what is wrong with a
#   revision shows there first.
package extend.rollout.young_nodes_first

import future.keywords.not

# METADATA
# title: The youngest node first
# description: |
#   The lower goes first, so the time of creation is negated. A pod that has no node yet
#   is not named: it has 0, and goes last, where the default order would have it first.
# labels:
#   id: young-nodes-first.rank
rank := {pod.namespacedName: place |
	some pod in input.pods
	place := 0 - pod.onNode.created
}
