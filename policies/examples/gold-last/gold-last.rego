# METADATA
# title: Gold last
# description: |
#   Pods with the label tier=gold are updated after all others, so that the most
#   valuable ones are disrupted when most of the rollout has proved itself.
package extend.rollout.gold_last

import future.keywords.not

# METADATA
# title: Gold after the rest
# description: |
#   A pod that is not named has 0, and the lower goes first. One comprehension over
#   all pods is ten times faster than one rule for each of them.
# labels:
#   id: gold-last.rank
rank := {pod.name: 1 | some pod in input.pods; pod.labels.tier == "gold"}
