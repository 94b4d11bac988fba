package extend.rollout.young_nodes_first_test

import future.keywords.not

import data.extend.rollout.young_nodes_first

pods := [
	{"name": "web-a", "namespacedName": "shop/web-a", "node": "n1", "onNode": {"created": 1793404800}},
	{"name": "web-b", "namespacedName": "shop/web-b", "node": "n2", "onNode": {"created": 1793404799}},
	{"name": "web-c", "namespacedName": "shop/web-c"},
]

test_only_pods_on_young_nodes_have_a_place if young_nodes_first.rank == {"shop/web-a": -1} with input.pods as pods

test_without_young_nodes_the_rank_is_there_all_the_same if young_nodes_first.rank == {} with input.pods as []
