package extend.rollout.error_budget_test

import future.keywords.not

import data.extend.rollout.error_budget

holds(annotations, facts) := answer if {
	answer := error_budget.hold with data.extend.rollout.error_budget.slo as {"annotation": "slo.example/budget-left", "least": 0.25}
		with input as object.union(
			{
				"update": 5,
				"revisions": {"current": "web-1", "update": "web-2"},
				"counts": {"updated": 2},
				"workload": {"kind": "CloneSet", "namespace": "shop", "name": "web", "annotations": annotations},
			},
			facts,
		)
}

reasons(left) := {hold.reason | some hold in holds({"slo.example/budget-left": left}, {})}

test_enough_is_enough if {
	reasons("0.25") == set()
	reasons("1") == set()
	reasons("1.000") == set()
}

test_too_little_holds if {
	reasons("0.249999") == {"ErrorBudgetSpent"}
	reasons("0") == {"ErrorBudgetSpent"}
	some hold in holds({"slo.example/budget-left": "0.1"}, {})
	hold.message == "CloneSet shop/web has less than 25 % of its error budget left (annotation slo.example/budget-left), so it is not updated."
}

test_what_is_no_fraction_holds if {
	every left in ["", "12%", "-0.5", "1.5", "NaN", "0,5", "0.5 "] {
		reasons(left) == {"ErrorBudgetUnknown"}
	}
}

test_a_workload_without_the_annotation_is_left_alone if {
	holds({}, {}) == set()
	error_budget.hold == set() with input as {"update": 5, "workload": {"name": "web"}}
}

test_a_rollout_back_needs_no_budget if {
	every facts in [{"update": -5}, {"revisions": {"update": "web-1"}}] {
		holds({"slo.example/budget-left": "0"}, facts) == set()
		holds({"slo.example/budget-left": "broken"}, facts) == set()
	}
}

spent(facts) := {hold.reason | some hold in holds({"slo.example/budget-left": "0"}, facts)}

test_the_old_template_needs_budget_once_the_rollout_is_complete if {
	spent({"revisions": {"current": "web-2", "update": "web-1"}, "counts": {"updated": 0}}) == {"ErrorBudgetSpent"}
	spent({"revisions": {"current": "web-2", "update": "web-1"}}) == {"ErrorBudgetSpent"}
}

test_equal_revisions_of_other_kinds_are_no_rollout_back if {
	every kind in ["StatefulSet", "DaemonSet", "SidecarSet", "UnitedDeployment"] {
		spent({"workload": {"kind": kind}, "revisions": {"update": "web-1"}}) == {"ErrorBudgetSpent"}
	}
}

test_a_restart_and_a_workload_spread_are_no_rollout_back if {
	spent({"revisions": {"update": "web-1"}, "restart": true}) == {"ErrorBudgetSpent"}
	spent({"revisions": {"current": "", "update": ""}, "counts": {"updated": 0}}) == {"ErrorBudgetSpent"}
}

test_the_data_that_is_shipped_is_sound if {
	slo := data.extend.rollout.error_budget.slo
	slo.annotation != ""
	slo.least > 0
	slo.least <= 1
}
