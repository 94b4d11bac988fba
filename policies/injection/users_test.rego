package injection_test

import future.keywords.not

import data.injection

ruled(packages, sets) := answer if {
	answer := injection.sidecars with input as {"pod": {"namespace": "shop", "name": "web-", "containers": []}, "sets": sets}
		with data.extend.injection as packages
}

wish(set) := {"set": set, "reason": "R", "message": "m"}

test_a_skip_leaves_out if {
	left := ruled({"a": {"skip": {wish("logs")}}}, [logs]).left[0]
	left == {"set": "logs", "rule": "extend.injection.a", "reason": "R", "message": "m"}
}

test_of_several_the_first_package_says_why if {
	ruled({"b": {"skip": {wish("logs")}}, "a": {"skip": {object.union(wish("logs"), {"rule": "mine"})}}}, [logs]).left[0].rule == "mine"
}

test_what_is_malformed_has_no_effect if {
	every malformed in ["logs", {"set": "logs"}, object.union(wish("logs"), {"rule": 7}), object.union(wish("logs"), {"rule": ""}), object.union(wish("logs"), {"if": true})] {
		names(ruled({"a": {"skip": {malformed}}}, [logs])) == ["logs"]
	}
}

test_what_is_added_is_wanted_until_it_is_known if {
	ruled({"a": {"add": {wish("audit")}}}, []).wanted == ["audit"]
	answer := ruled({"a": {"add": {wish("logs")}}}, [object.union(logs, {"selected": false})])
	names(answer) == ["logs"]
	answer.wanted == []
}

test_a_skip_beats_an_add if names(ruled({"a": {"add": {wish("logs")}, "skip": {wish("logs")}}}, [logs])) == []

test_first_goes_before_local if {
	sets := [object.union(logs, {"name": "a", "containers": ["a"], "local": true}), logs]
	names(ruled({"a": {"settings": {"first": ["logs"]}}}, sets)) == ["logs", "a"]
	names(ruled({"a": {"settings": {"first": [7]}}}, sets)) == ["a", "logs"]
}
