package extend.placement.half_in_spot_test

import data.extend.placement.half_in_spot

spot := {"label": "capacity", "values": ["spot"], "share": 0.5}

rooms(facts) := {denial.target: denial.room | some denial in denials} if {
	denials := half_in_spot.deny with input as facts with data.extend.placement.half_in_spot.spot as spot
}

on_demand := {"name": "safe", "nodes": {"capacity": ["on-demand"]}}

test_spot_gets_half_rounded_down if rooms({"replicas": 5, "subsets": [{"name": "cheap", "nodes": {"capacity": ["spot"]}}, on_demand]}) == {"cheap": 2}

test_two_spot_subsets_share_the_half if {
	rooms({"replicas": 10, "subsets": [{"name": "a", "nodes": {"capacity": ["spot"]}}, on_demand, {"name": "b", "nodes": {"capacity": ["spot"]}}]}) == {"a": 3, "b": 2}
}

test_a_subset_of_other_nodes_as_well_is_free if {
	rooms({"replicas": 10, "subsets": [{"name": "any", "nodes": {"capacity": ["spot", "on-demand"]}}, {"name": "all", "nodes": {}}]}) == {}
}

test_where_all_is_spot_there_is_nowhere_else if rooms({"replicas": 10, "subsets": [{"name": "a", "nodes": {"capacity": ["spot"]}}]}) == {}

test_other_decisions_have_no_subsets if rooms({"nodes": []}) == {}
