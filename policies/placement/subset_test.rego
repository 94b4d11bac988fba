package placement_test

import data.placement

spread(subsets) := {"spread": {"name": "web"}, "pod": {"name": "web-x"}, "subsets": subsets}

ordinal(n, subsets) := {"spread": {"name": "db"}, "pod": {"name": "db-0", "ordinal": n}, "subsets": subsets}

chosen(facts) := answer if {
	whole := placement.subset with input as facts
	answer := whole.subset
}

test_without_facts_a_pod_is_created_as_it_is if {
	answer := placement.subset with input as {}
	answer.subset == ""
	answer.holds[0].reason == "FactsMissing"
}

test_the_first_with_room if {
	chosen(spread([{"name": "a", "max": 2, "pods": 1}, {"name": "b", "pods": 0}])) == "a"
	chosen(spread([{"name": "a", "max": 2, "pods": 2}, {"name": "b", "pods": 9}])) == "b"
	chosen(spread([{"name": "a", "max": 2, "pods": 0, "unschedulable": true}, {"name": "b", "pods": 9}])) == "b"
	chosen(spread([{"name": "a", "max": 2, "pods": 2}, {"name": "b", "max": 1, "pods": 1}])) == ""
}

test_pods_of_statefulsets_go_by_their_ordinals if {
	subsets := [{"name": "a", "max": 2, "pods": 5}, {"name": "b", "max": 1, "pods": 5}, {"name": "c", "pods": 0}]
	chosen(ordinal(1, subsets)) == "a"
	chosen(ordinal(2, subsets)) == "b"
	chosen(ordinal(3, subsets)) == "c"
	chosen(ordinal(1, [{"name": "a", "max": 2, "pods": 0, "unschedulable": true}, {"name": "b", "max": 1, "pods": 0}])) == ""
	chosen(ordinal(0, [{"name": "a", "max": 2, "pods": 0, "unschedulable": true}, {"name": "b", "max": 1, "pods": 0}])) == "b"
}

test_rules_keep_pods_out if {
	facts := spread([{"name": "a", "max": 9, "pods": 2}, {"name": "b", "pods": 0}])
	chosen(facts) == "b" with data.extend.placement as {"x": {"deny": [{"reason": "R", "message": "m", "target": "a", "room": 2}]}}
	chosen(facts) == "a" with data.extend.placement as {"x": {"deny": [{"reason": "R", "message": "m", "target": "a", "room": 3}]}}
	chosen(facts) == "b" with data.extend.placement as {"x": {"hold": [{"reason": "R", "message": "m", "target": "a"}]}}
	chosen(facts) == "" with data.extend.placement as {"x": {"hold": [{"reason": "R", "message": "m"}]}}
	chosen(facts) == "b" with data.extend.placement as {"x": {"rank": {"a": 1}}}
}
