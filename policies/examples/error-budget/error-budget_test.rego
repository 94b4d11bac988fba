package extend.rollout.error_budget_test

import future.keywords.not

import data.extend.rollout.error_budget

holds(annotations, update) := answer if {
	answer := error_budget.hold with data.extend.rollout.error_budget.slo as {"annotation": "slo.example/budget-left", "least": 0.25}
		with input as {"update": update, "workload": {"kind": "CloneSet", "namespace": "shop", "name": "web", "annotations": annotations}}
}

reasons(left) := {hold.reason | some hold in holds({"slo.example/budget-left": left}, 5)}

test_enough_is_enough if {
	reasons("0.25") == set()
	reasons("1") == set()
	reasons("1.000") == set()
}

test_too_little_holds if {
	reasons("0.249999") == {"ErrorBudgetSpent"}
	reasons("0") == {"ErrorBudgetSpent"}
	some hold in holds({"slo.example/budget-left": "0.1"}, 5)
	hold.message == "CloneSet shop/web has less than 25 % of its error budget left (annotation slo.example/budget-left), so it is not updated."
}

test_what_is_no_fraction_holds if {
	every left in ["", "12%", "-0.5", "1.5", "NaN", "0,5", "0.5 "] {
		reasons(left) == {"ErrorBudgetUnknown"}
	}
}

test_a_workload_without_the_annotation_is_left_alone if {
	holds({}, 5) == set()
	error_budget.hold == set() with input as {"update": 5, "workload": {"name": "web"}}
}

test_a_rollout_back_needs_no_budget if {
	holds({"slo.example/budget-left": "0"}, -5) == set()
	holds({"slo.example/budget-left": "broken"}, -5) == set()
}

test_the_data_that_is_shipped_is_sound if {
	slo := data.extend.rollout.error_budget.slo
	slo.annotation != ""
	slo.least > 0
	slo.least <= 1
}
