package extend.placement.cheapest_zone_first_test

import data.extend.placement.cheapest_zone_first

zones := {"label": "zone", "prices": {"a": 3, "b": 1, "c": 2}, "share": 0.5}

facts := {"replicas": 5, "subsets": [{"name": "one", "nodes": {"zone": ["a", "b"]}}, {"name": "two", "nodes": {"zone": ["c"]}}, {"name": "any", "nodes": {}}]}

test_the_dearest_zone_of_a_subset_counts if {
	cheapest_zone_first.rank == {"one": 3, "two": 2} with input as facts
		with data.extend.placement.cheapest_zone_first.zones as zones
}

test_no_zone_gets_more_than_its_part if {
	rooms := {denial.target: denial.room | some denial in cheapest_zone_first.deny} with input as facts
		with data.extend.placement.cheapest_zone_first.zones as zones
	rooms == {"one": 3, "two": 3}
}

test_a_single_subset_gets_all if {
	cheapest_zone_first.deny == set() with input as {"replicas": 5, "subsets": [{"name": "one", "nodes": {"zone": ["a"]}}]}
		with data.extend.placement.cheapest_zone_first.zones as zones
}

test_other_decisions_have_no_subsets if {
	cheapest_zone_first.rank == {} with input as {"nodes": []}
	cheapest_zone_first.deny == set() with input as {"nodes": []}
}
