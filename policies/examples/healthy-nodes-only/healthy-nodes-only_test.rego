package extend.rollout.healthy_nodes_only_test

import future.keywords.not

import data.extend.rollout.healthy_nodes_only

pods := [
	{"name": "log-a", "node": "n1", "updated": false, "onNode": {"unschedulable": true}},
	{"name": "log-b", "node": "n2", "updated": false, "onNode": {"conditions": ["DiskPressure", "Ready"]}},
	{"name": "log-c", "node": "n3", "updated": false, "onNode": {"conditions": ["Ready"]}},
	{"name": "log-d", "node": "n4", "updated": true, "onNode": {"unschedulable": true, "conditions": ["PIDPressure"]}},
	{"name": "web-e", "node": "n1", "updated": false},
]

held := {hold.pod: hold.message | some hold in holds} if {
	holds := healthy_nodes_only.hold with input.pods as pods
}

test_pods_wait_for_their_nodes if {
	held == {
		"log-a": "Node n1 is cordoned, so its pod is not updated until it is uncordoned.",
		"log-b": "Node n2 reports DiskPressure, so its pod is not updated until that is over.",
	}
}
