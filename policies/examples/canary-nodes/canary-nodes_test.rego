package extend.rollout.canary_nodes_test

import future.keywords.not

import data.extend.rollout.canary_nodes

pods := [
	{"name": "log-a", "node": "n1", "onNode": {"labels": {"shop.example/canary": "true"}}},
	{"name": "log-b", "node": "n2", "onNode": {"labels": {"shop.example/canary": "no"}}},
	{"name": "log-c", "node": "n3", "onNode": {}},
	{"name": "web-d", "node": "n1"},
]

test_only_pods_of_canary_nodes_have_a_rank if canary_nodes.rank == {"log-a": -1} with input.pods as pods

test_without_canary_nodes_the_rank_is_there_all_the_same if canary_nodes.rank == {} with input.pods as []
