package extend.rollout.team_guard_rails_test

import future.keywords.not

import data.extend.rollout.team_guard_rails

messages(facts) := {hold.message | some hold in holds} if {
	holds := team_guard_rails.hold with team_guard_rails.pods_at_a_time as 2
		with input as object.union(
			{
				"workload": {"kind": "CloneSet", "namespace": "shop", "name": "web"},
				"strategy": {"maxUnavailable": 2},
				"counts": {"unavailable": 1},
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

test_a_rollout_back_is_not_held if messages({"update": -5, "strategy": {"maxUnavailable": 9}, "counts": {"unavailable": 9}}) == set()

test_the_number_that_is_shipped_lets_a_rollout_begin if team_guard_rails.pods_at_a_time > 0
