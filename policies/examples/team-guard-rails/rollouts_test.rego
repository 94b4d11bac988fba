package extend.rollout.team_guard_rails_test

import future.keywords.not

import data.extend.rollout.team_guard_rails

messages(facts) := {hold.message | some hold in holds} if {
	holds := team_guard_rails.hold with team_guard_rails.pods_at_a_time as 2
		with input as object.union(
			{
				"workload": {"kind": "CloneSet", "namespace": "shop", "name": "web"},
				"strategy": {"maxUnavailable": 2},
				"revisions": {"current": "web-1", "update": "web-2"},
				"counts": {"unavailable": 1, "updated": 2},
				"update": 5,
			},
			facts,
		)
}

test_within_the_rails_a_rollout_goes_on if messages({}) == set()

test_a_strategy_that_allows_more_is_held if {
	messages({"strategy": {"maxUnavailable": 3}}) == {"CloneSet shop/web may have 3 pods unavailable at a time, and in this namespace 2 is the most. Lower maxUnavailable of its update strategy."}
}

test_pods_that_are_unavailable_for_whatever_reason_count if {
	messages({"counts": {"unavailable": 2}}) == {"CloneSet shop/web has 2 or more pods unavailable, so none is added to them."}
	messages({"counts": {"unavailable": 9}}) == messages({"counts": {"unavailable": 2}})
}

# How many holds there are where both rails are broken.
held(facts) := count(messages(object.union({"strategy": {"maxUnavailable": 9}, "counts": {"unavailable": 9}}, facts)))

test_a_rollout_back_is_not_held if {
	held({"update": -5}) == 0
	held({"revisions": {"update": "web-1"}}) == 0
}

test_the_old_template_is_held_once_the_rollout_is_complete if {
	held({"revisions": {"current": "web-2", "update": "web-1"}, "counts": {"updated": 0}}) == 2
	held({"revisions": {"current": "web-2", "update": "web-1"}}) == 2
}

test_equal_revisions_of_other_kinds_are_no_rollout_back if {
	every kind in ["StatefulSet", "DaemonSet", "UnitedDeployment"] {
		held({"workload": {"kind": kind}, "revisions": {"update": "web-1"}}) == 2
	}
}

test_a_restart_and_a_workload_spread_are_no_rollout_back if {
	held({"revisions": {"update": "web-1"}, "restart": true}) == 2
	held({"revisions": {"current": "", "update": ""}, "counts": {"updated": 0}}) == 2
}

test_the_number_that_is_shipped_lets_a_rollout_begin if team_guard_rails.pods_at_a_time > 0
