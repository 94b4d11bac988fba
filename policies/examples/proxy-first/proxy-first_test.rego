package extend.injection.proxy_first_test

import data.injection

sets := [
	{"name": "audit", "selected": true, "local": true, "paused": false, "updatePaused": false, "draw": 0, "failurePolicy": "Fail", "containers": ["audit"]},
	{"name": "logs", "selected": true, "local": false, "paused": false, "updatePaused": false, "draw": 0, "failurePolicy": "Fail", "containers": ["logs"]},
	{"name": "mesh-proxy", "selected": true, "local": false, "paused": false, "updatePaused": false, "draw": 0, "failurePolicy": "Fail", "containers": ["proxy"]},
]

test_the_proxy_comes_first if {
	answer := injection.sidecars with input as {"pod": {"namespace": "shop", "name": "web-", "containers": []}, "sets": sets}
	[given.set | some given in answer.inject] == ["mesh-proxy", "audit", "logs"]
}
