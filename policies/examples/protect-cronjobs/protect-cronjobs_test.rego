package extend.protection.protect_cronjobs_test

import future.keywords.not

import data.protection

test_cronjobs_are_protected_as_the_other_kinds_are if {
	kinds := protection.guards.kinds with input as {"gates": {"deletion": true}}
	[cronjobs] := [kind | some kind in kinds; kind.resource == "cronjobs"]
	count(kinds) > 10

	answer := protection.deletion with input as {
		"request": {"operation": "DELETE"},
		"object": {
			"group": "batch", "resource": "cronjobs", "kind": "CronJob", "namespace": "shop", "name": "report",
			"labels": {"policy.kruise.io/delete-protection": "Always"},
		},
		"kind": cronjobs,
		"gates": {"deletion": true},
	}
	not answer.allow
}
