package rollout_test

import future.keywords.not

import data.rollout

size := {
	"workload": {"kind": "CloneSet", "namespace": "shop", "name": "web"},
	"strategy": {"scaleMaxUnavailable": 3},
	"up": 0, "upCurrent": 0, "down": 0, "downCurrent": 0, "totalUnavailable": 1, "plannedDeletes": 0,
	"pods": [{"name": "a", "assigned": 1, "phase": 2, "available": 0, "ready": 1, "deletionCost": 4, "readySince": 9, "restarts": 0, "created": 5}],
}

scaled(facts) := answer if {
	answer := rollout.scale with input as object.union(size, facts)
}

reasons(facts) := [hold.reason | some hold in scaled(facts).holds]

test_what_is_missing_is_created_up_to_the_limit if {
	answer := scaled({"up": 5, "upCurrent": 1})
	[answer.create, answer.createCurrent, answer.delete] == [2, 1, 0]
	answer.holds[0].message == "scaleUp is limited because of scaleStrategy.maxUnavailable, limit: 2"
}

test_a_limit_that_is_not_reached_is_not_said if reasons({"up": 2}) == []

test_nothing_is_deleted_while_pods_are_missing if {
	scaled({"up": 1, "down": 1}).delete == 0
	reasons({"up": 1, "down": 1}) == ["ScaleUpFirst"]
}

test_what_is_too_many_is_deleted_by_what_is_lost if {
	answer := scaled({"down": 2, "downCurrent": 1})
	[answer.create, answer.delete, answer.deleteCurrent] == [0, 2, 1]
	[answer.keys, answer.then, answer.descending] == [[[1, 2, 0, 1, 4]], [[9, 0, 5]], [5, 6, 7]]
	answer.holds == []
}

test_deletions_under_way_are_waited_for if {
	scaled({"down": 2, "plannedDeletes": 1}).delete == 0
	reasons({"down": 2, "plannedDeletes": 1}) == ["PlannedDeletesFirst"]
}

test_without_facts_nothing_is_scaled if {
	answer := rollout.scale with input as {}
	[answer.create, answer.delete, answer.holds[0].reason] == [0, 0, "FactsMissing"]
}

test_pods_that_are_needed_come_back_but_for_those_marked_not_ready if {
	scaled({"needed": 2, "preparing": [{"name": "b", "markedNotReady": true}, {"name": "a", "markedNotReady": false}]}).keep == ["a"]
	scaled({"needed": 0, "preparing": [{"name": "a", "markedNotReady": false}]}).keep == []
}

test_planned_deletions_wait_while_pods_are_created if {
	scaled({"up": 2, "awaited": 0}).planned == "None"
	scaled({"up": 3, "awaited": 2}).planned == "None"
}

test_planned_deletions_go_on if {
	scaled({}).planned == "All"
	scaled({"up": 2, "awaited": 2}).planned == "All"
}

test_prepared_deletions_go_on_where_nothing_may_be_created if {
	scaled({"up": 2, "awaited": 2, "totalUnavailable": 3}).planned == "Prepared"
}

test_an_update_that_is_held_has_no_surge if {
	answer := scaled({"up": 3, "upCurrent": 2, "upWithoutSurge": 1, "upCurrentWithoutSurge": 0, "updateHeld": true})
	[answer.create, answer.createCurrent] == [1, 0]
	[hold.reason | some hold in answer.holds] == ["SurgeHeld"]
}

test_of_numbered_pods_the_highest_is_deleted_first if {
	answer := scaled({"down": 1, "pods": [object.union(size.pods[0], {"name": "web-3", "ordinal": 3}), object.union(size.pods[0], {"name": "web-4", "ordinal": 4})]})
	answer.keys == [[-3, 0, 0, 0, 0], [-4, 0, 0, 0, 0]]
}
