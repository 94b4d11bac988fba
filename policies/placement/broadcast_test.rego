package placement_test

import data.placement

facts := {
	"job": {"name": "upgrade", "namespace": "ops"},
	"room": 10,
	"counts": {"desired": 4, "waiting": 3, "active": 1},
	"nodes": [
		{"name": "a", "state": "Waiting", "labels": {"zone": "z1"}},
		{"name": "b", "state": "Active", "labels": {"zone": "z1"}},
		{"name": "c", "state": "Waiting", "labels": {"zone": "z2"}},
		{"name": "d", "state": "Waiting", "labels": {"zone": "z2"}},
	],
}

test_without_facts_nothing_is_created if {
	answer := placement.broadcast with input as {}
	answer.nodes == []
	answer.holds[0].reason == "FactsMissing"
}

test_all_that_wait_by_name if {
	answer := placement.broadcast with input as facts
	answer == {"nodes": ["a", "c", "d"], "holds": [], "denials": []}
}

test_ranks_put_nodes_first_and_last if {
	answer := placement.broadcast with input as facts
		with data.extend.placement as {"x": {"rank": {"d": -1, "a": 5, "b": -9}}}
	answer.nodes == ["d", "c", "a"]
}

test_packages_have_their_say_in_the_order_of_their_names if {
	answer := placement.broadcast with input as facts
		with data.extend.placement as {"y": {"rank": {"a": 1, "c": 2, "d": 0}}, "x": {"rank": {"a": 1}}}
	answer.nodes == ["d", "c", "a"]
}

test_a_rank_that_is_no_number_is_left_out if {
	answer := placement.broadcast with input as facts
		with data.extend.placement as {"x": {"rank": {"a": "last"}}}
	answer.nodes == ["a", "c", "d"]
}
