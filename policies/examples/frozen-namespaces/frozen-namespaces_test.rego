package extend.rollout.frozen_namespaces_test

import future.keywords.not

import data.extend.rollout.frozen_namespaces

web := {"kind": "CloneSet", "namespace": "shop", "name": "web"}

messages := {hold.message | some hold in frozen_namespaces.hold}

test_a_namespace_with_the_label_is_frozen if {
	messages == {"Namespace shop is frozen (label shop.example/freeze=audit), so CloneSet shop/web is not updated."} with input.workload as object.union(web, {"namespaceLabels": {"shop.example/freeze": "audit"}})
}

test_a_label_without_a_value_freezes_too if {
	count(messages) == 1 with input.workload as object.union(web, {"namespaceLabels": {"shop.example/freeze": ""}})
}

test_other_namespaces_are_not_frozen if {
	messages == set() with input.workload as web
	messages == set() with input.workload as object.union(web, {"namespaceLabels": {"tier": "gold"}})
}

test_a_pod_of_a_cluster_scoped_workload_is_held_by_its_own_namespace if {
	pods := [
		{"name": "web-0", "namespace": "shop", "namespaceLabels": {"shop.example/freeze": "audit"}},
		{"name": "web-0", "namespace": "bank", "namespaceLabels": {}},
	]
	held := frozen_namespaces.hold with input as {"workload": {"kind": "SidecarSet", "namespace": "", "name": "logs"}, "pods": pods}
	{[h.namespace, h.pod] | some h in held} == {["shop", "web-0"]}
}
