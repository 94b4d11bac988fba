package extend.rollout.young_nodes_first_test

import future.keywords.not

import data.extend.rollout.young_nodes_first

test_the_younger_the_node_the_earlier if {
	young_nodes_first.rank == {"shop/web-a": -1700000000, "shop/web-b": -1600000000} with input.pods as [
		{"name": "web-a", "namespacedName": "shop/web-a", "node": "n1", "onNode": {"created": 1700000000}},
		{"name": "web-b", "namespacedName": "shop/web-b", "node": "n2", "onNode": {"created": 1600000000}},
	]
}

test_a_pod_without_a_node_has_no_place if {
	young_nodes_first.rank == {} with input.pods as [{"name": "web-c", "namespacedName": "shop/web-c"}]
}
