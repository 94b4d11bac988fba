# METADATA
# title: Young nodes first
# description: |
#   Pods on nodes that joined after a day are updated first. Such a node has the newest
#   image, kernel and kubelet, and no caches of months: what is wrong with a revision
#   shows there first.
package extend.rollout.young_nodes_first

import future.keywords.not

# Nodes created from this time on count as young, in seconds since 1970: 2026-10-31.
# Places of pods are remembered, so a rule that ranks must not read the clock.
young_since := 1793404800

# METADATA
# title: Young nodes first
# description: A pod that is not named has 0, and the lower goes first.
# labels:
#   id: young-nodes-first.rank
rank := {pod.namespacedName: -1 | some pod in input.pods; pod.onNode.created >= young_since}
