package protection_test

import future.keywords.not

import data.protection

on := {"gates": {"deletion": true}}

kinds(settings) := {concat(".", [kind.resource, kind.group]): kind.cascading | some kind in answer.kinds} if {
	answer := protection.guards with input as on with data.extend.protection.shop.settings as settings
}

guarded(wishes) := guards if {
	guards := protection.guards.guards with input as on with data.extend.protection.shop.guard as wishes
}

test_the_kinds_that_are_built_in if {
	kinds({}) == {
		"namespaces.": "namespace",
		"customresourcedefinitions.apiextensions.k8s.io": "customresources",
		"deployments.apps": "replicas", "replicasets.apps": "replicas", "statefulsets.apps": "replicas",
		"clonesets.apps.kruise.io": "replicas", "statefulsets.apps.kruise.io": "replicas", "uniteddeployments.apps.kruise.io": "replicas",
		"services.": "", "ingresses.networking.k8s.io": "",
	}
}

test_a_new_kind_is_a_line_of_settings if {
	more := kinds({"kinds": {"cronjobs.batch": {"cascading": ""}, "caches.shop.example": {"cascading": "replicas"}, "secrets": {}}})
	[more["cronjobs.batch"], more["caches.shop.example"], more["secrets."], count(more)] == ["", "replicas", "", 13]
}

test_a_kind_that_is_built_in_stays_as_it_is if {
	kinds({"kinds": {"deployments.apps": {"cascading": ""}, "services": {"cascading": "replicas"}}}) == kinds({})
}

test_of_two_packages_the_one_that_protects_more_is_heard if {
	answer := protection.guards with input as on
		with data.extend.protection.a.settings as {"kinds": {"cronjobs.batch": {"cascading": ""}}}
		with data.extend.protection.b.settings as {"kinds": {"cronjobs.batch": {"cascading": "replicas"}}}
	[kind.cascading | some kind in answer.kinds; kind.resource == "cronjobs"] == ["replicas"]
}

test_kinds_that_are_malformed_are_protected_as_far_as_they_are_known if {
	kinds({"kinds": {"cronjobs.batch": true, "jobs.batch": {"cascading": "pods"}}})["cronjobs.batch"] == ""
	kinds({"kinds": {"cronjobs.batch": true, "jobs.batch": {"cascading": "pods"}}})["jobs.batch"] == ""
	every settings in [true, {"kinds": "cronjobs.batch"}, {"kinds": ["cronjobs.batch"]}, {"kinds": {"*.batch": {}, "*": {}, "pods/eviction": {}, "Secrets": {}, "": {}, ".batch": {}, "nodes": {}, "leases.coordination.k8s.io": {}}}] {
		kinds(settings) == kinds({})
	}
}

test_without_the_gate_no_kind_is_protected_and_guards_stay if {
	answer := protection.guards with input.gates.deletion as false
		with data.extend.protection.shop.guard as [{"group": "", "resource": "pods", "operations": ["EVICT"]}]
	[answer.kinds, count(answer.guards)] == [[], 1]
}

test_without_facts_all_stays_as_it_was if not protection.guards with input as {}

test_a_guard_is_passed_on if {
	guarded([{"group": "", "resource": "pods", "operations": ["EVICT", "DELETE"], "namespaces": ["shop"], "labels": {"shop.example/tier": "gold"}}]) == [{
		"rule": "extend.protection.shop", "group": "", "resource": "pods", "operations": ["DELETE", "EVICT"],
		"namespaces": ["shop"], "labels": {"shop.example/tier": "gold"},
	}]
}

failure_policies(more) := [object.get(guard, "failurePolicy", "none") | some guard in guarded([wish])] if {
	wish := object.union({"group": "", "resource": "persistentvolumeclaims", "operations": ["DELETE"]}, more)
}

test_a_guard_may_say_that_it_must_not_fail_open if {
	failure_policies({}) == ["none"]
	failure_policies({"failurePolicy": "Ignore"}) == ["none"]
	failure_policies({"failurePolicy": "Fail"}) == ["Fail"]
	every malformed in ["fail", "", 7, null, true] {
		failure_policies({"failurePolicy": malformed}) == ["Fail"]
	}
}

test_guards_are_in_an_order if {
	wishes := [{"rule": rule, "group": "apps", "resource": resource, "operations": {"UPDATE"}} | some rule in ["b", "a"]; some resource in ["statefulsets", "deployments"]]
	[[guard.rule, guard.resource] | some guard in guarded(wishes)] == [["a", "deployments"], ["a", "statefulsets"], ["b", "deployments"], ["b", "statefulsets"]]
}

test_a_guard_that_names_nothing_is_left_out if {
	every wish in [
		true, "pods", 7, [], {}, {"group": "", "resource": "pods"}, {"group": "", "resource": "pods", "operations": []},
		{"group": "", "resource": "pods", "operations": "DELETE"}, {"group": "", "resource": "pods", "operations": ["CREATE"]},
		{"group": "apps", "resource": "deployments", "operations": ["EVICT", "RESIZE"]}, {"resource": "pods", "operations": ["DELETE"]},
		{"group": 7, "resource": "pods", "operations": ["DELETE"]}, {"group": "", "resource": 7, "operations": ["DELETE"]},
		{"group": "*", "resource": "*", "operations": ["DELETE"]}, {"group": "", "resource": "nodes", "operations": ["DELETE"]},
	] {
		guarded([wish]) == []
	}
	guarded(true) == []
}

test_a_guard_that_is_malformed_is_about_more if {
	sloppy := {"rule": 7, "group": "", "resource": "pods", "operations": ["DELETE", "CREATE"], "namespaces": "shop", "labels": {"a b": "c", "tier": 7, "app": "web", "x": "y z"}}
	guarded([sloppy]) == [{"rule": "extend.protection.shop", "group": "", "resource": "pods", "operations": ["DELETE"], "namespaces": [], "labels": {"app": "web"}}]
	[guard] := guarded([object.union(sloppy, {"namespaces": ["Shop", 7, "shop"], "labels": "tier"})])
	[guard.namespaces, guard.labels] == [["shop"], {}]
}
