package placement_test

import data.placement

test_a_hold_that_is_none_holds if {
	every wish in [1, "x", {}, {"reason": "R"}, {"reason": "", "message": "m"}, {"reason": "R", "message": "m", "until": 1}] {
		holds := placement.user_hold with data.extend.placement as {"x": {"hold": [wish]}}
		some hold in holds
		hold.reason == "InvalidHold"
		hold.rule == "extend.placement.x"
	}
}

test_a_denial_that_is_none_holds if {
	every wish in [1, {"message": "m"}, {"reason": "R", "message": "m", "target": 1}] {
		holds := placement.user_hold with data.extend.placement as {"x": {"deny": [wish]}}
		count(holds) == 1
		denials := placement.user_deny with data.extend.placement as {"x": {"deny": [wish]}}
		denials == set()
	}
}

test_rules_that_cannot_be_read_hold if {
	holds := placement.user_hold with data.extend.placement as {"x": {"deny": true}, "y": {"hold": "now"}}
	count(holds) == 2
}

test_what_is_left_empty_is_left_out if {
	denials := placement.user_deny with data.extend.placement as {"x": {"deny": [{"reason": "R", "message": "m", "rule": "", "target": ""}]}}
	denials == {{"reason": "R", "message": "m", "rule": "extend.placement.x"}}
	holds := placement.user_hold with data.extend.placement as {"x": {"hold": [{"reason": "R", "message": "m", "rule": "x.r", "until": ""}]}}
	holds == {{"reason": "R", "message": "m", "rule": "x.r"}}
}

test_a_hold_may_be_of_one_place if {
	all := {"x": {"hold": [{"reason": "R", "message": "m", "target": "a"}]}}
	placed := placement.user_target_hold with data.extend.placement as all
	placed == {{"reason": "R", "message": "m", "rule": "extend.placement.x", "target": "a"}}
	whole := placement.user_hold with data.extend.placement as all
	whole == {{"reason": "R", "message": "m", "rule": "extend.placement.x"}}
}
