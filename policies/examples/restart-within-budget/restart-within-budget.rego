# METADATA
# title: Restart within the budget
# description: |
#   No container is restarted while a PodUnavailableBudget of its pod allows no more pods
#   to be unavailable.
package extend.node.restart_within_budget

import future.keywords.not

# METADATA
# title: The budget is used up
# description: A pod that is not ready already takes nothing more from the budget, so it goes on.
# labels:
#   id: restart-within-budget.used-up
hold contains {
	"rule": "restart-within-budget.used-up",
	"reason": "BudgetUsedUp",
	"message": sprintf("Restarts in pod %s/%s wait: budget %s has %d of %d pods that should be available, and allows no more to go.", [input.request.namespace, input.pod.name, budget.name, budget.current, budget.desired]),
} if {
	input.pod.ready
	some budget in input.budgets
	budget.allowed < 1
}
