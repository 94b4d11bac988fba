package node_test

import data.node

pulls := {"job": {"name": "warm", "namespace": "shop"}, "parallelism": 3, "free": 2}

test_without_facts_no_node_begins if {
	answer := node.images with input as {}
	answer.begin == 0
	answer.holds[0].reason == "FactsMissing"
}

test_as_many_begin_as_are_free if {
	answer := node.images with input as pulls
	answer == {"begin": 2, "holds": [], "denials": []}
}

test_a_hold_of_a_node_is_not_of_the_job if {
	answer := node.images with input as pulls with data.extend.node as {"x": {"hold": [{"reason": "R", "message": "m", "node": "n1"}]}}
	answer.holds == []
}

test_a_hold_keeps_where_and_room if {
	answer := node.images with input as pulls with data.extend.node as {"x": {"hold": [{"reason": "R", "message": "m", "where": {"zone": "a"}, "room": 0}]}}
	answer.holds == [{"rule": "extend.node.x", "reason": "R", "message": "m", "where": {"zone": "a"}, "room": 0}]
}

test_where_and_room_that_are_none_hold_all if {
	every wish in [{"where": "a"}, {"where": {"zone": 1}}, {"room": "two"}, {"room": 0.5}, {"node": 1}] {
		answer := node.images with input as pulls with data.extend.node as {"x": {"hold": [object.union({"reason": "R", "message": "m"}, wish)]}}
		answer.holds[0].reason == "InvalidHold"
	}
}
