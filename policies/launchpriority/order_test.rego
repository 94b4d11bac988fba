package launchpriority_test

import future.keywords.not

import data.launchpriority

asked(fields) := answer if {
	answer := launchpriority.order with input as object.union({"annotation": "", "containers": [{"name": "a"}, {"name": "b"}]}, fields)
}

test_without_facts_the_pod_is_refused if {
	answer := launchpriority.order with input as {}
	answer.refuse[0].rule == "launchpriority.order.no-facts"
}

test_no_order_is_none if asked({}) == {"priorities": {}, "refuse": []}

test_the_order_of_the_spec if asked({"annotation": "Ordered"}).priorities == {"a": 0, "b": -1}

test_places_count_from_the_lowest if {
	asked({"annotation": "{}", "places": {"b": 1, "a": 2}}).priorities == {"a": -2, "b": -1}
	asked({"annotation": "{}", "places": {"b": 1}}).priorities == {"a": -2, "b": -1}
}

test_env_counts_from_the_highest if {
	asked({"containers": [{"name": "a"}, {"name": "b", "priority": 1}]}).priorities == {"a": 0, "b": 1}
}

test_equal_priorities_are_none if asked({"containers": [{"name": "a", "priority": 1}, {"name": "b", "priority": 1}]}).priorities == {}

test_faults_refuse if {
	asked({"annotation": "{", "fault": "no JSON"}).refuse[0].message == "no JSON"
	asked({"containers": [{"name": "a", "fault": "no number"}, {"name": "b"}]}).refuse[0].message == "no number"
	asked({"annotation": "Ordered", "containers": [{"name": "a", "fault": "no number"}, {"name": "b"}]}).refuse == []
}

native(fields) := asked(object.union(
	{
		"nativeSidecars": true,
		"restartPolicy": "Always",
		"annotation": "Ordered",
		"containers": [{"name": "proxy"}, {"name": "logs"}, {"name": "main", "readiness": true, "ports": true, "startup": true, "bound": "it is"}],
	},
	fields,
))

kept(fields) := [answer.native, [difference.rule | some difference in answer.differs]] if {
	answer := native(fields)
}

test_native_where_it_is_the_same if {
	kept({}) == [true, []]
	kept({"owner": {"group": "apps", "kind": "ReplicaSet"}}) == [true, []]
	kept({"owner": {"group": "", "kind": "ReplicationController"}}) == [true, []]
	native({}).priorities == {"proxy": 0, "logs": -1, "main": -2}
}

test_barriers_without_the_gate if {
	kept({"nativeSidecars": false}) == [false, []]
	kept({"nativeSidecars": false, "restartPolicy": "Never"}) == [false, []]
}

test_barriers_where_it_differs if {
	kept({"restartPolicy": "Never"}) == [false, ["launchpriority.order.restarts"]]
	kept({"owner": {"group": "apps.kruise.io", "kind": "CloneSet"}}) == [false, ["launchpriority.order.owner"]]
	kept({"containers": [{"name": "a", "readiness": true}, {"name": "b"}]}) == [false, ["launchpriority.order.readiness"]]
	kept({"containers": [{"name": "a", "ports": true}, {"name": "b"}]}) == [false, ["launchpriority.order.ports"]]
	kept({"containers": [{"name": "a", "bound": "it is"}, {"name": "b"}]}) == [false, ["launchpriority.order.bound"]]
}

test_a_startup_probe_is_waited_for_alone if {
	kept({"containers": [{"name": "a", "startup": true}, {"name": "b"}]}) == [true, []]
	several := [{"name": "a", "priority": 1, "startup": true}, {"name": "b", "priority": 1}, {"name": "c"}]
	kept({"annotation": "", "containers": several}) == [false, ["launchpriority.order.startup"]]
}
