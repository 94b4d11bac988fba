# METADATA
# title: Surge before evict
# description: |
#   A pod with the label shop.example/surge-first=true is evicted only while its
#   workload has a replica more than it asks for, so that it is never short of one.
package extend.protection.surge_before_evict

import future.keywords.not

# Selects the requests that the API server asks the manager about. Without a guard it asks about none.
guard contains {"group": "", "resource": "pods", "operations": ["EVICT"], "labels": {"shop.example/surge-first": "true"}}

# METADATA
# title: No spare replica
# description: The message says how to get one. A drain tries again until there is one.
# labels:
#   id: surge-before-evict.no-spare
deny contains {
	"rule": "surge-before-evict.no-spare",
	"reason": "NoSpareReplica",
	"message": sprintf("Pod %s/%s stays until its workload has a spare replica. Have another one made first: kubectl label pod %s -n %s apps.kruise.io/specified-delete=true", [input.object.namespace, input.object.name, input.object.name, input.object.namespace]),
} if {
	concerned
	input.budget.desired > 0
	not spare
}

# METADATA
# title: The replicas are not counted
# description: Without a budget there are no numbers, so nothing can be said to be spare.
# labels:
#   id: surge-before-evict.no-budget
deny contains {
	"rule": "surge-before-evict.no-budget",
	"reason": "NoBudgetCounts",
	"message": sprintf("Pod %s/%s has the label shop.example/surge-first=true, but no PodUnavailableBudget counts its replicas. Make one that selects it.", [input.object.namespace, input.object.name]),
} if {
	concerned
	not input.budget
}

# A pod that is not ready serves no requests, so its eviction needs no spare replica.
concerned if {
	input.request.operation == "EVICT"
	input.object.kind == "Pod"
	input.object.labels["shop.example/surge-first"] == "true"
	input.pod.ready
}

# METADATA
# title: A spare replica
# description: |
#   More may become unavailable than there are pods that the budget can do without,
#   so at least one pod is there beyond the replicas. What was let go a moment ago
#   is taken off the number already.
# labels:
#   id: surge-before-evict.spare
spare if input.budget.allowed > input.budget.total - input.budget.desired
