package placement_test

import data.placement

back := {
	"state": "db",
	"pod": {"name": "db-0", "namespace": "shop"},
	"recorded": {"node": "n1", "ready": true, "labels": {"host": "n1", "zone": "a"}},
	"required": ["host"],
	"preferred": [{"weight": 7, "keys": ["zone", "rack"]}],
}

test_without_facts_no_topology_is_asked_for if {
	answer := placement.persistent with input as {}
	answer.nodeSelector == {}
	answer.holds[0].reason == "FactsMissing"
}

test_where_it_was if {
	answer := placement.persistent with input as back
	answer == {"nodeSelector": {"host": "n1"}, "preferred": [{"weight": 7, "labels": {"zone": "a"}}], "holds": [], "denials": []}
}

test_a_denial_lets_it_go if {
	some target in ["db-0", "n1"]
	answer := placement.persistent with input as back
		with data.extend.placement as {"x": {"deny": {{"reason": "R", "message": "m", "target": target}}}}
	answer.nodeSelector == {}
	answer.preferred == []
	count(answer.denials) == 1
}

test_a_hold_keeps_it if {
	answer := placement.persistent with input as back
		with data.extend.placement as {"x": {"deny": {{"reason": "R", "message": "m"}}, "hold": {{"reason": "R", "message": "m"}}}}
	answer.nodeSelector == {"host": "n1"}
}

test_what_is_about_another_pod_does_not_count if {
	answer := placement.persistent with input as back
		with data.extend.placement as {"x": {"deny": {{"reason": "R", "message": "m", "target": "db-1"}}}}
	answer.nodeSelector == {"host": "n1"}
}
