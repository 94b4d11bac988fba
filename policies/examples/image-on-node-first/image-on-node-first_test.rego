package extend.rollout.image_on_node_first_test

import future.keywords.not

import data.extend.rollout.image_on_node_first

pods := [
	{"name": "web-a", "node": "n1", "updated": false, "pulls": [{"image": "web:2", "phase": ""}]},
	{"name": "web-b", "node": "n2", "updated": false, "pulls": [{"image": "web:2", "phase": "Pulling"}]},
	{"name": "web-c", "node": "n3", "updated": false, "pulls": [{"image": "web:2", "phase": "Failed"}]},
	{"name": "web-d", "node": "n4", "updated": false},
	{"name": "web-e", "node": "n1", "updated": true, "pulls": [{"image": "web:2", "phase": "Pulling"}]},
]

held := {hold.pod: hold.message | some hold in holds} if {
	holds := image_on_node_first.hold with input.pods as pods
}

test_pods_wait_for_their_images if {
	held == {
		"web-a": "Node n1 does not have image web:2 yet, so pod web-a is not updated until it is pulled.",
		"web-b": "Node n2 does not have image web:2 yet, so pod web-b is not updated until it is pulled.",
		"web-c": "Node n3 could not pull image web:2, so pod web-c is not updated while the ImagePullJob is there.",
	}
}
