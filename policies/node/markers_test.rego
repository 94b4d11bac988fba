package node_test

import data.node

markers_facts := {
	"pod": {"name": "game-1"},
	"results": [{
		"marker": "game", "probe": "idle", "container": "server", "state": "Succeeded", "conditionType": "Idle",
		"policies": [{"state": "Succeeded", "labels": {"idle": "true"}}, {"state": "Failed", "labels": {"busy": "true"}}],
	}],
}

test_without_facts_the_pod_keeps_what_it_has if {
	answer := node.markers with input as {}
	answer.holds[0].reason == "FactsMissing"
	answer.removeLabels == []
}

test_what_a_result_means if {
	answer := node.markers with input as markers_facts
	answer == {
		"conditions": [{"type": "Idle", "status": "True"}],
		"labels": {"idle": "true"}, "annotations": {},
		"removeLabels": ["busy"], "removeAnnotations": [], "holds": [],
	}
}

test_conditions_of_serverless_pods_are_their_own if {
	answer := node.markers with input as object.union(markers_facts, {"serverless": true})
	answer.conditions == []
	answer.labels == {"idle": "true"}
}
