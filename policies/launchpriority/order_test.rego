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
