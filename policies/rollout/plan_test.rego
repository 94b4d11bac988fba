package rollout_test

import future.keywords.not

import data.rollout

question := {
	"now": 1700000000000000000,
	"workload": {"kind": "CloneSet", "namespace": "shop", "name": "web", "uid": "1", "replicas": 10},
	"strategy": {"type": "RollingUpdate", "policy": "InPlaceIfPossible", "paused": false},
	"update": 7,
	"maxUnavailable": 2,
	"groups": {},
}

asked(change) := object.union(question, change)

test_a_rollout_that_nobody_holds_goes_on if {
	answer := rollout.plan with input as question
	answer == {"limit": 7, "maxUnavailable": 2, "holds": [], "scatter": [], "unavailable": ""}
}

test_what_is_unavailable_of_a_daemonset_or_a_sidecarset_needs_no_room if {
	every kind in {"DaemonSet", "SidecarSet"} {
		rollout.plan.unavailable == "Always" with input as asked({"workload": {"kind": kind}})
	}
}

test_a_rollout_back_is_limited_by_as_many_pods if {
	rollout.plan.limit == 3 with input as asked({"update": -3})
}

test_a_paused_rollout_is_held_and_has_no_limit if {
	answer := rollout.plan with input as asked({"strategy": {"paused": true}})
	answer.limit == 0
	answer.holds[0].reason == "RolloutPaused"
}

test_a_hold_names_a_workload_without_a_namespace_by_its_name if {
	every strategy in [{"paused": true}, {"type": "OnDelete"}, {"type": "Sideways"}] {
		answer := rollout.plan with input as asked({"workload": {"kind": "SidecarSet", "namespace": "", "name": "logs"}, "strategy": strategy})
		startswith(answer.holds[0].message, "SidecarSet logs ")
	}
}

test_the_holds_of_users_are_joined_and_name_their_package if {
	answer := rollout.plan with input as question
		with data.extend.rollout as {
			"freeze": {"hold": [{"reason": "Frozen", "message": "The shop is closed."}]},
			"soak": {"hold": [{"rule": "soak", "reason": "Soaking", "message": "The first pod soaks.", "where": {"zone": "a"}}]},
			"one": {"hold": [{"reason": "One", "message": "Not this one.", "pod": "web-a"}]},
		}
	{hold | some hold in answer.holds} == {
		{"reason": "Frozen", "message": "The shop is closed.", "rule": "extend.rollout.freeze"},
		{"reason": "Soaking", "message": "The first pod soaks.", "rule": "soak", "where": {"zone": "a"}},
		{"reason": "One", "message": "Not this one.", "pod": "web-a", "rule": "extend.rollout.one"},
	}
	answer.limit == 7
}

test_without_facts_nothing_is_started if {
	answer := rollout.plan with input as {}
	answer.limit == 0
	answer.holds[0].reason == "FactsMissing"
}

test_on_delete_and_strategies_that_no_rule_knows_have_no_limit if {
	every type, reason in {"OnDelete": "OnDelete", "Sideways": "UnknownStrategy"} {
		answer := rollout.plan with input as asked({"strategy": {"type": type}})
		answer.limit == 0
		answer.holds[0].reason == reason
	}
}

test_terms_to_scatter_by_are_passed_on if {
	terms := [{"key": "tier", "value": "gold"}]
	rollout.plan.scatter == terms with input as asked({"strategy": {"scatter": terms}})
}
