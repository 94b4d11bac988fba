package extend.rollout.one_zone_at_a_time_test

import future.keywords.not

import data.extend.rollout.one_zone_at_a_time

old := {"total": 3, "updated": 0, "unavailable": 0}

new := {"total": 3, "updated": 3, "unavailable": 0}

held(update, zones) := {hold.where.zone | some hold in holds(update, zones)}

holds(update, zones) := answer if {
	answer := one_zone_at_a_time.hold with input as {
		"workload": {"kind": "CloneSet", "namespace": "shop", "name": "web"},
		"update": update,
		"groups": {"zone": zones, "region": {"north": old}},
	}
}

test_the_first_zone_by_name_begins if held(9, {"b": old, "a": old, "c": old}) == {"b", "c"}

test_the_next_zone_begins_when_the_first_is_done if held(6, {"a": new, "b": old, "c": old}) == {"a", "c"}

test_a_zone_with_updated_pods_that_are_not_available_is_not_done if {
	held(6, {"a": object.union(new, {"unavailable": 1}), "b": old}) == {"b"}
}

test_a_zone_that_is_half_updated_goes_on if {
	held(4, {"a": object.union(old, {"updated": 2}), "b": old}) == {"b"}
}

test_back_goes_zone_by_zone_as_well if {
	held(-4, {"a": old, "b": new, "c": new}) == {"a", "c"}
}

test_pods_without_a_zone_come_first if {
	some hold in holds(6, {"": {"total": 1, "updated": 1, "unavailable": 1}, "a": old})
	hold.where.zone == "a"
	hold.message == "CloneSet shop/web updates one zone at a time, so pods in zone a wait until all pods that are in no zone yet are updated and available."
}

test_a_single_zone_waits_for_none if held(3, {"a": old}) == set()

test_without_anything_to_move_nothing_is_held if {
	held(0, {"a": new, "b": object.union(new, {"unavailable": 1})}) == set()
}

test_without_zones_nothing_is_held if held(3, {}) == set()
