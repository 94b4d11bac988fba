package extend.protection.surge_before_evict_test

import future.keywords.not

import data.extend.protection.surge_before_evict
import data.protection

# Ten replicas, of which nine must be available.
budget(current) := {"name": "web", "maxUnavailable": "1", "operations": [], "ignored": false, "desired": 9, "current": current, "allowed": max([0, current - 9]), "total": 10, "records": 0}

asked(facts) := object.union(
	{
		"request": {"operation": "EVICT", "user": {"name": "ann"}, "dryRun": false},
		"object": {"resource": "pods", "kind": "Pod", "namespace": "shop", "name": "web-1", "terminating": false, "labels": {"shop.example/surge-first": "true"}},
		"pod": {"ready": true, "consistent": true, "noProtect": false},
	},
	facts,
)

reasons(facts) := {denial.reason | some denial in denials} if {
	denials := surge_before_evict.deny with input as asked(facts)
}

test_without_a_spare_replica_it_stays_though_the_budget_would_let_it_go if {
	reasons({"budget": budget(10)}) == {"NoSpareReplica"}
	answer := protection.budget with input as asked({"budget": budget(10)})
	not answer.allow
	[reason.message | some reason in answer.reasons] == ["Pod shop/web-1 stays until its workload has a spare replica. Have another one made first: kubectl label pod web-1 -n shop apps.kruise.io/specified-delete=true"]
}

test_with_one_it_goes if {
	reasons({"budget": budget(11)}) == set()
	answer := protection.budget with input as asked({"budget": budget(11)})
	answer.allow
}

test_one_spare_replica_is_for_one_eviction if {
	taken := object.union(budget(11), {"allowed": 1})
	reasons({"budget": taken}) == {"NoSpareReplica"}
}

test_a_pod_that_no_budget_counts_stays_and_says_so if reasons({}) == {"NoBudgetCounts"}

test_others_go if {
	reasons({"request": {"operation": "DELETE"}}) == set()
	reasons({"object": {"labels": {"shop.example/surge-first": "no"}}}) == set()
	reasons({"object": {"kind": "Service"}}) == set()
	reasons({"pod": {"ready": false}}) == set()
}

test_a_budget_that_wants_no_pods_keeps_none if {
	reasons({"budget": object.union(budget(10), {"desired": 0})}) == set()
}

test_the_api_server_asks_about_evictions if {
	[guard] := protection.guards.guards with input as {"gates": {"deletion": true}}
	[guard.resource, guard.operations] == ["pods", ["EVICT"]]
}
