package extend.rollout.game_servers_test

import future.keywords.not

import data.extend.rollout.game_servers

pods := [
	{"name": "game-1", "labels": {"game.example/players": "true"}},
	{"name": "game-2", "labels": {"game.example/players": "false"}},
	{"name": "game-3"},
]

test_players_come_last if game_servers.rank == {"game-1": 1} with input.pods as pods

test_without_players_the_rank_is_there_all_the_same if game_servers.rank == {} with input.pods as []
