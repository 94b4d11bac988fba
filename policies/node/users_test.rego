package node_test

import data.node

test_a_hold_that_is_none_holds if {
	every wish in [1, "x", {}, {"reason": "R"}, {"reason": "", "message": "m"}, {"reason": "R", "message": "m", "until": 1}] {
		holds := node.user_hold with data.extend.node as {"x": {"hold": [wish]}}
		some hold in holds
		hold.reason == "InvalidHold"
		hold.rule == "extend.node.x"
	}
}

test_a_denial_that_is_none_holds if {
	every wish in [1, {"message": "m"}, {"reason": "R", "message": "m", "container": 1}] {
		holds := node.user_hold with data.extend.node as {"x": {"deny": [wish]}}
		count(holds) == 1
		denials := node.user_deny with data.extend.node as {"x": {"deny": [wish]}}
		denials == set()
	}
}

test_a_restart_on_another_node_is_not_denied if {
	denials := node.restarts.denials with data.extend.node as {"x": {"deny": [{"reason": "R", "message": "m", "node": "n2"}]}}
		with input as object.union(facts, {"pod": {"node": "n1"}})
	denials == []
}

test_a_denial_of_a_node_that_is_not_known_counts if {
	denials := node.restarts.denials with data.extend.node as {"x": {"deny": [{"reason": "R", "message": "m", "node": "n2"}]}} with input as facts
	denials == [{"rule": "extend.node.x", "reason": "R", "message": "m"}]
}

test_rules_that_cannot_be_read_hold if {
	holds := node.user_hold with data.extend.node as {"x": {"deny": true}, "y": {"hold": "now"}}
	count(holds) == 2
}

test_what_is_left_empty_is_left_out if {
	denials := node.user_deny with data.extend.node as {"x": {"deny": [{"reason": "R", "message": "m", "rule": "", "container": ""}]}}
	denials == {{"reason": "R", "message": "m", "rule": "extend.node.x"}}
	holds := node.user_hold with data.extend.node as {"x": {"hold": [{"reason": "R", "message": "m", "rule": "x.r", "until": ""}]}}
	holds == {{"reason": "R", "message": "m", "rule": "x.r"}}
}
