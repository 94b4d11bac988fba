package placement_test

import data.placement

subset(name, current) := {"name": name, "exists": true, "min": 0, "current": current, "ready": current, "placed": current, "reserved": 0}

with_fields(name, current, fields) := object.union(subset(name, current), fields)

united(strategy, replicas, subsets) := {"deployment": {"name": "web"}, "strategy": strategy, "replicas": replicas, "subsets": subsets}

counts(facts) := {share.name: share.replicas | some share in placement.allocation.subsets with input as facts}

rules(facts) := {share.name: share.rule | some share in placement.allocation.subsets with input as facts}

said(facts) := {hold.message | some hold in placement.allocation.holds with input as facts}

test_without_facts_subsets_stay if {
	answer := placement.allocation with input as {}
	answer.subsets == []
	answer.holds[0].reason == "FactsMissing"
}

test_shares_are_even_and_the_largest_keep_what_remains if {
	counts(united("Fixed", 10, [subset("a", 4), subset("b", 3), subset("c", 3)])) == {"a": 4, "b": 3, "c": 3}
	counts(united("Fixed", 11, [subset("a", 0), subset("b", 0), subset("c", 0)])) == {"a": 3, "b": 4, "c": 4}
	counts(united("Fixed", 0, [subset("a", 3)])) == {"a": 0}
}

test_numbers_of_subsets_stay if {
	facts := united("Fixed", 10, [with_fields("a", 0, {"given": 5}), subset("b", 0), subset("c", 0)])
	counts(facts) == {"a": 5, "b": 2, "c": 3}
	rules(facts) == {"a": "placement.allocation.given", "b": "placement.allocation.share", "c": "placement.allocation.share"}
}

test_without_replicas_all_subsets_have_a_number if {
	facts := object.remove(united("Fixed", 0, [with_fields("a", 0, {"given": 5})]), {"replicas"})
	counts(facts) == {"a": 5}
}

test_contradictions_are_told if {
	said(united("Fixed", 3, [with_fields("a", 0, {"given": 5})])) == {"specified subsets' replica (5) is greater than UnitedDeployment replica (3)"}
	said(united("Fixed", 7, [with_fields("a", 0, {"given": 5})])) == {"specified subsets' replica (5) is less than UnitedDeployment replica (7)"}
	said(object.remove(united("Fixed", 0, [subset("a", 0)]), {"replicas"})) == {"spec.replicas must be set where not all subsets have replicas"}
	said(object.remove(united("Limits", 0, [with_fields("a", 0, {"given": 1})]), {"replicas"})) == {"spec.replicas must be set where subsets have minReplicas or maxReplicas"}
	said(united("Limits", 7, [with_fields("a", 0, {"min": 3, "max": 2})])) == {"subset a has minReplicas (3) greater than maxReplicas (2)"}
}

test_limits_fill_in_order if {
	facts := united("Limits", 10, [with_fields("a", 0, {"min": 1, "max": 4}), with_fields("b", 0, {"min": 2, "max": 3}), with_fields("c", 0, {"min": 1})])
	counts(facts) == {"a": 4, "b": 3, "c": 3}
	rules(facts).a == "placement.allocation.limits"
}

test_a_subset_without_room_keeps_what_runs if {
	full := with_fields("a", 10, {"ready": 4, "placed": 4, "unschedulable": true})
	facts := united("Adaptive", 10, [full, subset("b", 0)])
	counts(facts) == {"a": 4, "b": 6}
	rules(facts).a == "placement.allocation.unschedulable"
	counts(united("Adaptive", 10, [with_fields("a", 10, {"ready": 0, "placed": 0, "unschedulable": true, "min": 2}), subset("b", 0)])) == {"a": 2, "b": 8}
}

test_what_runs_stays if {
	counts(united("Adaptive", 10, [subset("a", 4), with_fields("b", 6, {"ready": 2})])) == {"a": 4, "b": 6}
	counts(united("Adaptive", 10, [with_fields("a", 6, {"max": 4}), subset("b", 4)])) == {"a": 4, "b": 6}
}

test_where_none_has_room_pods_wait if {
	full := {"placed": 1, "ready": 1, "unschedulable": true}
	counts(united("Adaptive", 10, [with_fields("a", 4, full), with_fields("b", 6, full)])) == {"a": 4, "b": 6}
	counts(united("Adaptive", 12, [with_fields("a", 4, full), with_fields("b", 6, full)])) == {"a": 6, "b": 6}
}

test_others_stand_in_for_pods_that_wait if {
	waits := with_fields("a", 10, {"ready": 4, "reserved": 6, "unschedulable": true, "marked": true})
	counts(united("Reserve", 10, [waits, subset("b", 0)])) == {"a": 10, "b": 6}
	counts(united("Reserve", 10, [with_fields("a", 4, {"marked": true}), subset("b", 6)])) == {"a": 10, "b": 6}
	counts(united("Reserve", 10, [subset("a", 10), subset("b", 6)])) == {"a": 10, "b": 0}
}

test_a_denial_leaves_room if {
	facts := united("Limits", 10, [subset("a", 0), subset("b", 0)])
	extending := {"x": {"deny": [{"reason": "R", "message": "m", "target": "a", "room": 4}, {"reason": "R", "message": "m", "target": "a", "room": 6}]}}
	counts(facts) == {"a": 4, "b": 6} with data.extend.placement as extending
	rules(facts).a == "placement.allocation.denied" with data.extend.placement as extending
}

test_a_denial_of_a_share_goes_to_the_others if {
	facts := united("Fixed", 10, [subset("a", 0), subset("b", 0), with_fields("c", 0, {"given": 4})])
	counts(facts) == {"a": 1, "b": 5, "c": 4} with data.extend.placement as {"x": {"deny": [{"reason": "R", "message": "m", "target": "a", "room": 1}]}}
	counts(facts) == {"a": 5, "b": 5, "c": 0} with data.extend.placement as {"x": {"deny": [{"reason": "R", "message": "m", "target": "c"}]}}
}

test_a_room_that_is_none_holds if {
	every room in ["1", -1, 0.5, null] {
		answer := placement.allocation with input as united("Limits", 10, [subset("a", 0)])
			with data.extend.placement as {"x": {"deny": [{"reason": "R", "message": "m", "room": room}]}}
		answer.holds[0].reason == "InvalidHold"
		answer.denials == []
	}
}

test_ranks_say_who_is_filled_first if {
	facts := united("Limits", 10, [with_fields("a", 0, {"max": 6}), with_fields("b", 0, {"max": 6})])
	counts(facts) == {"a": 4, "b": 6} with data.extend.placement as {"x": {"rank": {"a": 1}}}
	counts(united("Fixed", 3, [subset("a", 0), subset("b", 0)])) == {"a": 2, "b": 1} with data.extend.placement as {"x": {"rank": {"a": -1}}}
}

test_a_hold_of_a_subset_keeps_it if {
	extending := {"x": {"hold": [{"reason": "R", "message": "m", "target": "b"}]}}
	counts(united("Fixed", 10, [subset("a", 0), subset("b", 1), subset("c", 0)])) == {"a": 4, "b": 1, "c": 5} with data.extend.placement as extending
	counts(united("Adaptive", 10, [with_fields("a", 0, {"max": 4}), subset("b", 1), subset("c", 0)])) == {"a": 4, "b": 1, "c": 5} with data.extend.placement as extending
	rules(united("Fixed", 10, [subset("a", 0), subset("b", 1)])).b == "placement.allocation.held" with data.extend.placement as extending
}
