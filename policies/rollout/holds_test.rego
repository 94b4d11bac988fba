package rollout_test

import future.keywords.not

import data.rollout

held(wish) := hold if {
	hold := rollout.user_hold with data.extend.rollout.shop.hold as wish with input.groups as {"rack": {}}
}

sound := {"reason": "Closed", "message": "The shop is closed."}

test_a_sound_hold_gets_the_name_of_its_package if {
	held([sound]) == {{"rule": "extend.rollout.shop", "reason": "Closed", "message": "The shop is closed."}}
}

test_a_hold_may_have_more_fields_and_no_others if {
	more := {"rule": "mine", "pod": "web-a", "until": "2026-01-05T09:00:00Z", "newPods": "Update", "where": {"zone": "a", "region": "b", "rack": "c"}}
	held([object.union(sound, object.union(more, {"severity": 9}))]) == {object.union(sound, more)}
}

test_no_hold_is_none if {
	every none in [[], {}, set()] {
		held(none) == set()
	}
	rollout.user_hold == set()
}

test_a_hold_that_is_malformed_holds if {
	every wish in [
		true, false, null, 7, "closed", sound,
		["closed"], [7], [[]], [{}],
		[object.remove(sound, ["reason"])], [object.remove(sound, ["message"])],
		[object.union(sound, {"reason": ""})], [object.union(sound, {"message": 7})],
		[object.union(sound, {"rule": 7})], [object.union(sound, {"until": 7})], [object.union(sound, {"newPods": "Old"})], [object.union(sound, {"pod": 7})], [object.union(sound, {"pod": "shop/web-a"})], [object.union(sound, {"namespace": 7})],
		[object.union(sound, {"where": "zone"})], [object.union(sound, {"where": {"zone": 7}})], [object.union(sound, {"where": {"Zone": "a"}})],
	] {
		[[hold.reason, hold.rule] | some hold in held(wish)] == [["InvalidHold", "extend.rollout.shop"]]
	}
}

test_a_malformed_hold_of_a_pod_holds_that_pod if {
	{hold.pod | some hold in held([{"pod": "web-a"}])} == {"web-a"}
}

test_a_malformed_hold_of_a_pod_in_a_namespace_holds_that_pod if {
	{[hold.pod, hold.namespace] | some hold in held([{"pod": "web-a", "namespace": "shop"}])} == {["web-a", "shop"]}
	{object.remove(hold, ["reason", "message", "rule"]) | some hold in held([{"pod": "web-a", "namespace": 7}])} == {{"pod": "web-a"}}
	{object.remove(hold, ["reason", "message", "rule"]) | some hold in held([{"pod": "shop/web-a"}])} == {{}}
}

# The holds of a workload in a namespace, but for what is the same of all.
in_namespace(namespace, wish) := {object.remove(hold, ["reason", "message", "rule"]) |
	some hold in rollout.user_hold with input as {"workload": {"namespace": namespace}}
		with data.extend.rollout.shop.hold as [object.union(sound, wish)]
}

test_a_hold_keeps_its_namespace_where_the_workload_has_none if {
	in_namespace("", {"namespace": "a", "pod": "web-0"}) == {{"namespace": "a", "pod": "web-0"}}
	in_namespace("", {"namespace": "a"}) == {{"namespace": "a"}}
	in_namespace("", {"namespace": ""}) == {{}}
}

test_a_hold_of_the_namespace_of_its_workload_is_as_if_it_named_none if {
	in_namespace("a", {"namespace": "a", "pod": "web-0"}) == {{"pod": "web-0"}}
	in_namespace("a", {"namespace": "a"}) == {{}}
	in_namespace("a", {"pod": "web-0"}) == {{"pod": "web-0"}}
}

test_a_hold_of_another_namespace_is_none_of_the_workload if {
	in_namespace("a", {"namespace": "b", "pod": "web-0"}) == set()
	in_namespace("a", {"namespace": "b"}) == set()
	in_namespace("a", {"namespace": "b", "reason": 7}) == set()
}
