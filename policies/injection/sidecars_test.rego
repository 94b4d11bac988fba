package injection_test

import future.keywords.not

import data.injection

logs := {"name": "logs", "selected": true, "local": false, "paused": false, "updatePaused": false, "draw": 0.5, "failurePolicy": "Fail", "containers": ["shipper"]}

asked(sets) := answer if {
	answer := injection.sidecars with input as {"pod": {"namespace": "shop", "name": "web-", "containers": []}, "sets": sets}
}

names(answer) := [one.set | some one in answer.inject]

with_revision(fields) := asked([object.union(logs, fields)]).inject[0]

test_facts_that_are_missing_refuse_the_pod if {
	answer := injection.sidecars with input as {}
	answer.refuse[0].rule == "injection.sidecars.no-facts"
}

test_a_selected_set_is_given if names(asked([logs])) == ["logs"]

test_a_set_that_does_not_select_is_left if asked([object.union(logs, {"selected": false})]).left[0].reason == "NotSelected"

test_a_paused_set_is_left if asked([object.union(logs, {"paused": true})]).left[0].reason == "InjectionPaused"

test_a_canary_replaces_its_base if {
	answer := asked([logs, object.union(logs, {"name": "canary", "canaryOf": "logs"})])
	names(answer) == ["canary"]
	answer.left[0].reason == "CanaryInjected"
}

test_local_sets_come_first if {
	names(asked([
		object.union(logs, {"name": "a", "containers": ["a"]}),
		object.union(logs, {"name": "b", "containers": ["b"], "local": true}),
	])) == ["b", "a"]
}

test_a_name_that_is_taken_leaves_the_later_one if {
	answer := asked([logs, object.union(logs, {"name": "more"})])
	names(answer) == ["logs"]
	answer.left[0].reason == "ContainerNameTaken"
}

test_one_that_is_left_out_takes_no_name if {
	answer := asked([
		object.union(logs, {"name": "a", "containers": ["x"]}),
		object.union(logs, {"name": "b", "containers": ["x", "y"]}),
		object.union(logs, {"name": "c", "containers": ["y", "z"]}),
		object.union(logs, {"name": "d", "containers": ["z"]}),
		object.union(logs, {"name": "e", "containers": ["e"]}),
	])
	names(answer) == ["a", "c", "e"]
	[one.set | some one in answer.left] == ["b", "d"]
	contains(answer.left[0].message, "SidecarSet a,")
	contains(answer.left[1].message, "SidecarSet c,")
}

test_a_long_chain_is_settled_one_after_the_other if {
	answer := asked([object.union(logs, {"name": sprintf("s%03d", [n]), "containers": [sprintf("c%d", [n]), sprintf("c%d", [n + 1])]}) |
		some n in numbers.range(0, 59)
	])
	names(answer) == [sprintf("s%03d", [2 * n]) | some n in numbers.range(0, 29)]
	count(answer.left) == 30
}

test_a_canary_that_is_left_out_leaves_its_base if {
	answer := asked([
		object.union(logs, {"name": "first", "containers": ["new"]}),
		logs,
		object.union(logs, {"name": "the-canary", "canaryOf": "logs", "containers": ["shipper", "new"]}),
	])
	names(answer) == ["first", "logs"]
	[[one.set, one.reason] | some one in answer.left] == [["the-canary", "ContainerNameTaken"]]
}

test_a_second_canary_is_left_out_beside_the_base if {
	answer := asked([
		logs,
		object.union(logs, {"name": "one", "canaryOf": "logs"}),
		object.union(logs, {"name": "two", "canaryOf": "logs"}),
	])
	names(answer) == ["one"]
	[[one.set, one.reason] | some one in answer.left] == [["logs", "CanaryInjected"], ["two", "ContainerNameTaken"]]
}

test_the_first_clause_says_which_revision if {
	named := {"policy": "Partial", "found": true}
	with_revision({}).reason == "LatestRevision"
	with_revision({"revision": {"policy": "Always", "found": false}}).reason == "RevisionGone"
	with_revision({"revision": named, "updatePaused": true}).reason == "UpdatePaused"
	with_revision({"revision": {"policy": "Always", "found": true}}).reason == "RevisionNamed"
	with_revision({"revision": named, "updateSelected": false}).reason == "NotSelectedForUpdate"
	with_revision({"revision": named, "share": 0.5}).reason == "WithinPartition"
	with_revision({"revision": named, "share": 0.4}).reason == "AmongUpdated"
	with_revision({"revision": named, "updateSelected": true}).revision == "Latest"
}
