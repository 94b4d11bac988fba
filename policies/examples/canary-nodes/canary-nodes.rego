# METADATA
# title: Canary nodes
# description: |
#   A DaemonSet is updated on nodes with the label shop.example/canary=true first,
#   whatever their names are. With a partition it goes no further than these.
package extend.rollout.canary_nodes

import future.keywords.not

# METADATA
# title: Canary nodes first
# description: A pod that is not named has 0, and the lower goes first.
# labels:
#   id: canary-nodes.rank
rank := {pod.name: -1 | some pod in input.pods; pod.onNode.labels["shop.example/canary"] == "true"}
