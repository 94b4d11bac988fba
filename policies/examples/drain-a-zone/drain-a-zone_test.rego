package extend.placement.drain_a_zone_test

import data.extend.placement.drain_a_zone

draining := {"label": "zone", "zones": ["b", "d"], "step": 2}

rooms(subsets) := {denial.target: denial.room | some denial in denials} if {
	denials := drain_a_zone.deny with input as {"replicas": 10, "subsets": subsets} with data.extend.placement.drain_a_zone.draining as draining
}

a := {"name": "a", "nodes": {"zone": ["a"]}, "current": 5, "ready": 5}

b := {"name": "b", "nodes": {"zone": ["b"]}, "current": 5, "ready": 3}

test_a_step_goes_while_the_others_are_ready if rooms([a, b]) == {"b": 3}

test_it_waits_for_pods_that_are_not_ready if rooms([object.union(a, {"ready": 4}), b]) == {"b": 5}

test_the_last_pods_go if rooms([a, object.union(b, {"current": 1})]) == {"b": 0}

test_one_subset_at_a_time if rooms([a, b, object.union(b, {"name": "d", "nodes": {"zone": ["d"]}})]) == {"b": 3, "d": 5}

test_the_next_subset_when_the_first_is_empty if {
	rooms([a, object.union(b, {"current": 0}), object.union(b, {"name": "d", "nodes": {"zone": ["d"]}})]) == {"b": 0, "d": 3}
}

test_where_all_are_drained_pods_stay if rooms([b]) == {}

test_a_subset_of_another_zone_as_well_stays if rooms([a, object.union(b, {"nodes": {"zone": ["a", "b"]}})]) == {}

test_other_decisions_have_no_subsets if {
	drain_a_zone.deny == set() with input as {"nodes": []} with data.extend.placement.drain_a_zone.draining as draining
}
