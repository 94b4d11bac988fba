package node_test

import data.node

facts := {
	"request": {"name": "r", "namespace": "shop", "ordered": false, "failFast": true},
	"containers": [{"name": "app", "phase": "Pending", "found": true, "permitted": false}, {"name": "log", "phase": "Pending", "found": true, "permitted": false}],
}

test_without_facts_nothing_is_stopped if {
	answer := node.restarts with input as {}
	answer.restart == []
	answer.holds[0].reason == "FactsMissing"
}

test_all_that_wait if {
	answer := node.restarts with input as facts
	answer == {"restart": ["app", "log"], "charge": false, "holds": [], "denials": []}
}

test_one_after_the_other if {
	answer := node.restarts with input as object.union(facts, {"request": {"ordered": true}})
	answer.restart == ["app"]
}

test_none_after_a_failure if {
	answer := node.restarts with input as object.union(facts, {"containers": [{"name": "app", "phase": "Failed", "found": true, "permitted": false}, facts.containers[1]]})
	answer.restart == []
}

test_a_liveness_probe_is_charged_to_the_budget if {
	answer := node.restarts with input as object.union(facts, {"request": {"labels": {"crr.regatta.sh/liveness": "app"}}})
	answer.charge
}
