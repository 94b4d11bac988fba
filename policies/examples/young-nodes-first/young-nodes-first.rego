# METADATA
# title: Young nodes first
# description: |
#   Pods on the youngest nodes are updated first. A node that joined yesterday has the newest image, kernel and
#   kubelet, and carries the least that was warmed up over months, so what is wrong shows where least is lost.
package extend.rollout.young_nodes_first

import future.keywords.not

# METADATA
# title: The youngest node first
# description: |
#   The lower goes first, so the time of creation is negated. A pod that has no node yet is named with no place; it has 0 and goes
#   last.
# labels:
#   id: young-nodes-first.rank
rank := {pod.namespacedName: 0 - pod.onNode.created | some pod in input.pods}
