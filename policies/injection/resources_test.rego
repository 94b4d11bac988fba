package injection_test

import data.injection

computed(fields) := answer if {
	answer := injection.resources with input as object.union({"set": "logs", "container": "shipper", "pattern": ".*", "targets": ["main"], "limits": {}, "requests": {}}, fields)
}

test_without_facts_the_pod_is_refused if {
	answer := injection.resources with input as {}
	answer.refuse[0].rule == "injection.resources.no-facts"
}

test_values_are_set_but_for_what_is_unlimited if {
	computed({
		"limits": {"cpu": {"expression": "cpu", "unlimited": true, "value": 0}, "memory": {"expression": "memory", "unlimited": false, "value": 7}},
		"requests": {"cpu": {"expression": "cpu", "unlimited": false, "value": 0}},
	}) == {"limits": {"memory": 7}, "requests": {"cpu": 0}, "refuse": []}
}

test_no_target_refuses if computed({"targets": []}).refuse[0].reason == "NoTargetContainers"

test_a_fault_refuses if {
	answer := computed({"limits": {"cpu": {"expression": "cpu/0", "unlimited": false, "value": 0, "fault": "it divides by zero"}}})
	answer.refuse[0].message == "SidecarSet logs: the resourcesPolicy of container shipper is faulty: limits.cpu \"cpu/0\": it divides by zero"
}
