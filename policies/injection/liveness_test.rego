package injection_test

import data.injection

probed := {
	"asked": true, "pod": {"name": "web-1", "owner": {"group": "apps", "kind": "ReplicaSet", "name": "web"}},
	"containers": [{"name": "web", "handler": "httpGet", "supported": true}, {"name": "rpc", "handler": "grpc", "supported": false}],
}

taken(facts) := answer.take if {
	answer := injection.liveness with input as object.union(probed, facts)
}

test_without_facts_the_kubelet_probes if {
	answer := injection.liveness with input as {}
	answer == {"take": []}
}

test_what_the_annotation_asks_for_and_the_agent_can_run if taken({}) == ["web"]

test_a_pod_that_does_not_ask_keeps_its_probes if taken({"asked": false}) == []
