package extend.protection.game_servers_test

import future.keywords.not

import data.extend.protection.game_servers
import data.protection

asked(facts) := object.union(
	{
		"request": {"operation": "DELETE", "user": {"name": "system:serviceaccount:kruise-system:kruise-manager"}},
		"object": {"resource": "pods", "kind": "Pod", "namespace": "shop", "name": "game-1", "labels": {"app": "game", "game.example/players": "true"}},
	},
	facts,
)

denied(facts) if {
	denials := game_servers.deny with input as asked(facts)
	count(denials) == 1
}

test_a_pod_with_players_stays_whoever_deletes_it if {
	denied({})
	denied({"request": {"operation": "EVICT"}})
	denied({"request": {"user": {"name": "ann"}}})
}

test_a_pod_without_players_goes if {
	not denied({"object": {"labels": {"game.example/players": "false"}}})
	not denied({"request": {"operation": "UPDATE"}})
	not denied({"object": {"kind": "Service"}})
}

test_the_api_server_asks_about_pods_with_players if {
	[guard] := protection.guards.guards with input as {"gates": {"deletion": true}}
	guard.labels == {"game.example/players": "true"}
}
