# METADATA
# title: Game servers with players come last
# description: |
#   Pods with the label game.example/players=true, which a PodProbeMarker sets, are
#   updated after all others.
package extend.rollout.game_servers

import future.keywords.not

# METADATA
# title: Players last
# description: A pod that is not named has 0, and the lower goes first.
# labels:
#   id: game-servers.last
rank := {pod.name: 1 | some pod in input.pods; pod.labels["game.example/players"] == "true"}
