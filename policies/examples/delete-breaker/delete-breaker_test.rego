package extend.protection.delete_breaker_test

import future.keywords.not

import data.extend.protection.delete_breaker
import data.protection

asked(facts) := object.union(
	{
		"request": {"operation": "DELETE", "user": {"name": "ann", "groups": ["system:authenticated"]}},
		"object": {"resource": "pods", "kind": "Pod", "namespace": "shop", "name": "web-1"},
		"recent": {"seconds": 60, "deletes": 20, "userDeletes": 18},
	},
	facts,
)

denied(facts) if {
	denials := delete_breaker.deny with input as asked(facts)
	count(denials) == 1
}

test_the_breaker_opens_after_twenty if {
	not denied({"recent": {"deletes": 19}})
	denied({"recent": {"deletes": 20}})
	denied({"recent": {"deletes": 100}})
}

test_evictions_count_and_updates_do_not if {
	denied({"request": {"operation": "EVICT"}})
	not denied({"request": {"operation": "UPDATE"}})
}

test_what_is_in_no_namespace_counts_too if {
	denials := delete_breaker.deny with input as object.union(
		object.remove(asked({}), ["object"]),
		{"object": {"resource": "namespaces", "name": "shop"}},
	)
	some denial in denials
	startswith(denial.message, "20 namespaces were deleted in the cluster in the last 60 seconds, ")
}

test_controllers_go_on if not denied({"request": {"user": {"groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system"]}}})

test_the_whole_decision_says_how_many if {
	answer := protection.budget with input as asked({"pod": {"ready": false, "consistent": true}})
	not answer.allow
	answer.reasons[0].message == "20 pods were deleted in namespace shop in the last 60 seconds, 18 of them by ann, and 20 are allowed. Look whether that was meant, and try again in a minute."
}

test_the_api_server_asks_about_each_resource if {
	guards := protection.guards.guards with input as {"gates": {"deletion": true}}
	{concat(".", [guard.resource, guard.group]): guard.operations | some guard in guards} == {
		"pods.": ["DELETE", "EVICT"], "persistentvolumeclaims.": ["DELETE"], "services.": ["DELETE"],
		"deployments.apps": ["DELETE"], "statefulsets.apps": ["DELETE"], "clonesets.apps.kruise.io": ["DELETE"],
	}
}
