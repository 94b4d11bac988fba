package placement_test

import data.placement

look := {
	"job": {"name": "look", "namespace": "shop"},
	"room": 10,
	"counts": {"desired": 3, "waiting": 2, "active": 1},
	"pods": [
		{"name": "b", "state": "Waiting", "created": 1},
		{"name": "c", "state": "Active", "created": 2},
		{"name": "a", "state": "Waiting", "created": 3},
	],
}

test_without_facts_no_container_is_added if {
	answer := placement.ephemeral with input as {}
	answer.pods == []
	answer.holds[0].reason == "FactsMissing"
}

test_pods_that_wait_the_oldest_first if {
	answer := placement.ephemeral with input as look
	answer == {"pods": ["b", "a"], "holds": [], "denials": []}
}

test_pods_of_one_rank_keep_their_order if {
	answer := placement.ephemeral with input as object.union(look, {"pods": array.concat(look.pods, [{"name": "0", "state": "Waiting", "created": 4}])})
		with data.extend.placement as {"x": {"rank": {"0": -1, "c": -2}}}
	answer.pods == ["0", "b", "a"]
}

test_holds_and_denials_are_told if {
	answer := placement.ephemeral with input as look
		with data.extend.placement as {"x": {
			"hold": {{"reason": "Night", "message": "It is night.", "target": "b"}},
			"deny": {{"reason": "Gold", "message": "Pod a is gold.", "target": "a"}},
		}}
	answer.holds == [{"rule": "extend.placement.x", "reason": "Night", "message": "It is night.", "target": "b"}]
	answer.denials == [{"rule": "extend.placement.x", "reason": "Gold", "message": "Pod a is gold.", "target": "a"}]
}
