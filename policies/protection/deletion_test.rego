package protection_test

import future.keywords.not

import data.protection

workload := {
	"request": {"operation": "DELETE", "user": {"name": "ann"}},
	"object": {"group": "apps", "resource": "deployments", "kind": "Deployment", "namespace": "shop", "name": "web", "terminating": false, "labels": {"policy.kruise.io/delete-protection": "Always"}},
	"kind": {"group": "apps", "resource": "deployments", "cascading": "replicas"},
	"replicas": 3,
	"gates": {"deletion": true, "crdCascading": true},
}

cascading(kind, facts) := answer if {
	answer := protection.deletion with input as object.union(
		object.union(object.remove(workload, ["replicas"]), {
			"object": {"labels": {"policy.kruise.io/delete-protection": "Cascading"}},
			"kind": {"cascading": kind},
		}),
		facts,
	)
}

deleted(facts) := answer if {
	answer := protection.deletion with input as object.union(workload, facts)
}

said(answer) := [answer.allow, [why.reason | some why in answer.reasons]]

test_always_denies_and_says_how if {
	answer := deleted({})
	not answer.allow
	answer.reasons == [{
		"rule": "protection.deletion.always",
		"reason": "DeletionProtected",
		"message": "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Always. To delete it all the same, remove the label first: kubectl label deployments.apps web -n shop policy.kruise.io/delete-protection-",
	}]
}

test_objects_of_the_cluster_have_no_namespace_to_name if {
	answer := protection.deletion with input as object.union(workload, {"object": {"group": "", "resource": "namespaces", "namespace": "", "name": "shop"}})
	endswith(answer.reasons[0].message, "kubectl label namespaces shop policy.kruise.io/delete-protection-")
}

test_each_clause_lets_go_what_always_would_keep if {
	said(deleted({"object": {"terminating": true}})) == [true, ["AlreadyTerminating"]]
	said(deleted({"request": {"operation": "UPDATE"}})) == [true, ["NotADeletion"]]
	said(deleted({"gates": {"deletion": false}})) == [true, ["DeletionProtectionDisabled"]]
	said(deleted({"object": {"labels": {"policy.kruise.io/delete-protection": "always"}}})) == [true, ["NotLabelled"]]
	unknown := protection.deletion with input as object.remove(workload, ["kind"])
	said(unknown) == [true, ["KindNotProtected"]]
	unlabelled := protection.deletion with input as object.union(workload, {"object": object.remove(workload.object, ["labels"])})
	said(unlabelled) == [false, ["DeletionProtected"]] # object.union keeps the label
	bare := protection.deletion with input as object.union(object.remove(workload, ["object"]), {"object": object.remove(workload.object, ["labels"])})
	said(bare) == [true, ["NotLabelled"]]
}

test_replicas_keep_a_workload if {
	answer := cascading("replicas", {"replicas": 3})
	said(answer) == [false, ["HasReplicas"]]
	startswith(answer.reasons[0].message, "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading and replicas 3>0. Scale it to 0 first: kubectl scale deployments.apps web -n shop --replicas=0. ")
	said(cascading("replicas", {"replicas": 0})) == [true, ["NothingGoesAlong"]]
	said(cascading("replicas", {})) == [true, ["NothingGoesAlong"]]
}

test_pods_and_then_volumes_keep_a_namespace if {
	pods := cascading("namespace", {"pods": 2, "claims": 1})
	said(pods) == [false, ["HasPods"]]
	startswith(pods.reasons[0].message, "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading and active pods 2>0. ")
	claims := cascading("namespace", {"pods": 0, "claims": 1})
	said(claims) == [false, ["HasVolumeClaims"]]
	startswith(claims.reasons[0].message, "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading and \"Bound\" status pvc 1>0. ")
	said(cascading("namespace", {"pods": 0, "claims": 0})) == [true, ["NothingGoesAlong"]]
}

test_custom_resources_keep_their_definition if {
	answer := cascading("customresources", {"customResources": 4})
	said(answer) == [false, ["HasCustomResources"]]
	startswith(answer.reasons[0].message, "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading and active CRs 4>0. ")
	said(cascading("customresources", {"customResources": 0})) == [true, ["NothingGoesAlong"]]
	off := cascading("customresources", {"customResources": 0, "gates": {"crdCascading": false}})
	said(off) == [false, ["CascadingProtectionDisabled"]]
	startswith(off.reasons[0].message, "feature-gate DeletionProtectionForCRDCascadingGate is not enabled")
}

test_some_kinds_take_nothing_along if said(cascading("", {})) == [true, ["NothingGoesAlong"]]

test_what_was_not_counted_may_be_there if {
	every case in [["namespace", {}, "pods"], ["namespace", {"pods": 0}, "pvc"], ["customresources", {}, "CRs"], ["replicas", {}, "replicas"]] {
		answer := cascading(case[0], object.union(case[1], {"uncounted": "timeout"}))
		said(answer) == [false, ["NotCounted"]]
		startswith(answer.reasons[0].message, sprintf("forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading for list %s error: timeout. Try again. ", [case[2]]))
	}
}

shut := [{"reason": "Closed", "message": "The shop is closed."}]

test_users_deny_whatever_the_label_says if {
	answer := deleted({"object": {"labels": {"policy.kruise.io/delete-protection": ""}}}) with data.extend.protection.shop.deny as shut
	said(answer) == [false, ["Closed"]]
	both := deleted({}) with data.extend.protection.shop.deny as shut
	said(both) == [false, ["DeletionProtected", "Closed"]]
	going := deleted({"object": {"terminating": true}}) with data.extend.protection.shop.deny as shut
	said(going) == [true, ["AlreadyTerminating"]]
	other := deleted({"request": {"operation": "UPDATE"}}) with data.extend.protection.shop.deny as shut
	said(other) == [false, ["Closed"]]
}

test_an_exemption_lets_go_where_no_policy_decided if {
	answer := protection.deletion_exempt with input as {"request": {"operation": "DELETE"}, "object": {"kind": "Deployment", "name": "web"}}
		with data.extend.protection.ops.exempt as [{"reason": "Open", "message": "It is an emergency."}]
	[answer.allow, answer.exempt, [r.reason | some r in answer.reasons]] == [true, true, ["Open", "NoDecision"]]
}

test_without_an_exemption_nothing_is_let_go_where_no_policy_decided if {
	not protection.deletion_exempt with input as {"request": {"operation": "DELETE"}, "object": {"kind": "Deployment", "name": "web"}}
}

test_an_exemption_lets_go if {
	answer := deleted({}) with data.extend.protection.ops.exempt as [{"reason": "Open", "message": "It is an emergency."}]
	[answer.exempt, said(answer)] == [true, [true, ["Open", "DeletionProtected"]]]
}

test_a_glass_that_did_not_break_is_mentioned_here_too if {
	said(deleted({"object": {"annotations": {"policy.kruise.io/break-glass": "please"}}})) == [false, ["DeletionProtected", "BreakGlassNotAllowed"]]
}

test_without_facts_the_object_stays if {
	said(cascading("namespace", {"pods": 0})) == [false, ["FactsMissing"]]
	said(cascading("customresources", {})) == [false, ["FactsMissing"]]
	said(cascading("something", {})) == [false, ["FactsMissing"]]
	every facts in [{}, object.remove(workload, ["object"]), object.remove(workload, ["object", "kind"])] {
		answer := protection.deletion with input as facts
		said(answer) == [false, ["FactsMissing"]]
	}
}
