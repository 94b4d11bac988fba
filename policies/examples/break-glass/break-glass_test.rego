package extend.protection.break_glass_test

import future.keywords.not

import data.protection

# Whether a user deletes a workload that is protected, with a reason on it.
deletes(user, annotations) := answer if {
	answer := protection.deletion with input as {
		"request": {"operation": "DELETE", "user": user},
		"object": {
			"group": "apps", "resource": "deployments", "kind": "Deployment", "namespace": "shop", "name": "web",
			"labels": {"policy.kruise.io/delete-protection": "Always"}, "annotations": annotations,
		},
		"kind": {"group": "apps", "resource": "deployments", "cascading": "replicas"},
		"gates": {"deletion": true},
	}
}

reason := {"policy.kruise.io/break-glass": "INC-7: the node pool burns"}

test_on_call_breaks_it_with_a_reason if {
	every user in [{"name": "bob", "groups": ["shop:on-call"]}, {"name": "ann@shop.example"}] {
		answer := deletes(user, reason)
		answer.exempt
		contains(answer.reasons[0].message, "broke the glass for DELETE of Deployment web: INC-7: the node pool burns")
	}
}

test_without_a_reason_it_stays_whole if {
	not deletes({"name": "ann@shop.example"}, {"policy.kruise.io/break-glass": " "}).allow
	not deletes({"name": "ann@shop.example"}, {}).allow
}

test_nobody_else_breaks_it if not deletes({"name": "eve", "groups": ["shop:developers"]}, reason).allow
