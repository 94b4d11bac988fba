package rollout_test

import data.rollout

due := {
	"workload": {"kind": "AdvancedCronJob", "namespace": "shop", "name": "backup"},
	"run": {"name": "backup-1700000000", "kind": "Job", "scheduled": 1700000000000000000, "concurrency": "Allow", "active": [], "missed": 0},
}

test_without_facts_a_run_waits if {
	answer := rollout.run with input as {}
	answer.action == "Wait"
	answer.holds[0].reason == "FactsMissing"
}

test_a_run_that_is_due_starts if {
	answer := rollout.run with input as due
	answer == {"action": "Start", "holds": []}
}

test_forbid_waits_for_the_earlier_run if {
	answer := rollout.run with input as object.union(due, {"run": {"concurrency": "Forbid", "active": ["backup-1"]}})
	answer.action == "Wait"
	answer.holds[0].reason == "JobAlreadyActive"
}

test_a_hold_that_says_nothing_of_runs_is_not_about_them if {
	answer := rollout.run with input as due
		with data.extend.rollout as {"freeze": {"hold": [{"reason": "R", "message": "m"}]}}
	answer == {"action": "Start", "holds": []}
}

test_a_hold_may_have_a_run_wait if {
	answer := rollout.run with input as due
		with data.extend.rollout as {"freeze": {"hold": [{"reason": "R", "message": "m", "run": "Wait"}]}}
	answer == {"action": "Wait", "holds": [{"rule": "extend.rollout.freeze", "reason": "R", "message": "m", "run": "Wait"}]}
}

test_one_that_skips_is_enough if {
	answer := rollout.run with input as due
		with data.extend.rollout as {"a": {"hold": [{"reason": "R", "message": "m", "run": "Wait"}]}, "b": {"hold": [{"reason": "S", "message": "n", "run": "Skip"}]}}
	answer.action == "Skip"
	count(answer.holds) == 2
}

test_a_malformed_hold_has_a_run_wait if {
	every wish in [1, {"reason": "R"}, {"reason": "R", "message": "m", "run": "Later"}, {"reason": "R", "message": "m", "run": true}] {
		answer := rollout.run with input as due
			with data.extend.rollout as {"x": {"hold": [wish]}}
		answer.action == "Wait"
		answer.holds[0].reason == "InvalidHold"
	}
}
