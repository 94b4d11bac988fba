package extend.node.restart_within_budget_test

import data.extend.node.restart_within_budget

restart(ready, allowed) := {
	"request": {"namespace": "shop", "name": "r"},
	"pod": {"name": "web-1", "ready": ready},
	"budgets": [{"name": "web", "allowed": allowed, "desired": 2, "current": 2}],
}

test_it_waits_for_the_budget if {
	some hold in restart_within_budget.hold with input as restart(true, 0)
	hold.message == "Restarts in pod shop/web-1 wait: budget web has 2 of 2 pods that should be available, and allows no more to go."
}

test_it_goes_within_the_budget if restart_within_budget.hold == set() with input as restart(true, 1)

test_a_pod_that_is_not_ready_goes if restart_within_budget.hold == set() with input as restart(false, 0)
