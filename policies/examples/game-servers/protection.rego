# METADATA
# title: Game servers with players are never deleted
# description: |
#   A pod with the label game.example/players=true, which a PodProbeMarker sets, is
#   neither deleted nor evicted, by any client.
package extend.protection.game_servers

import future.keywords.not

# Edit this, and the markerPolicy of the PodProbeMarker with it.
playing := {"game.example/players": "true"}

# Selects the requests that the API server asks the manager about. Without a guard it asks about none.
guard contains {"group": "", "resource": "pods", "operations": ["DELETE", "EVICT"], "labels": playing}

# METADATA
# title: Players are there
# description: The pod has the label that the probe sets while there are players.
# labels:
#   id: game-servers.playing
deny contains {
	"rule": "game-servers.playing",
	"reason": "PlayersOnline",
	"message": sprintf("Pod %s/%s has players (label %s=%s), so it stays until they have left.", [input.object.namespace, input.object.name, key, value]),
} if {
	input.request.operation in {"DELETE", "EVICT"}
	input.object.kind == "Pod"
	some key, value in playing
	input.object.labels[key] == value
}
