package node_test

import data.node

ending := {
	"restartPolicy": "Never", "phase": "Running",
	"containers": [
		{"name": "main", "image": "a", "sidecar": false, "ignoreExitCode": false, "known": true, "terminated": true, "ended": true, "exitCode": 0},
		{"name": "proxy", "image": "b", "sidecar": true, "ignoreExitCode": false, "known": true, "terminated": false, "ended": false, "exitCode": 0},
	],
}

test_without_facts_all_run_on if {
	answer := node.termination with input as {}
	answer.holds[0].reason == "FactsMissing"
}

test_a_sidecar_ends_with_its_main_container if {
	answer := node.termination with input as ending
	answer == {"stop": ["proxy"], "images": {}, "phase": "", "holds": []}
}

test_a_sidecar_runs_on_with_its_main_container if {
	main := object.union(ending.containers[0], {"terminated": false, "ended": false})
	answer := node.termination with input as object.union(ending, {"containers": [main, ending.containers[1]]})
	answer.stop == []
}

proxy(facts) := object.union(ending.containers[1], facts)

ended(containers, facts) := answer if {
	answer := node.termination with input as object.union(object.union(ending, {"containers": containers}), facts)
}

test_a_main_container_that_is_started_again_has_not_ended if {
	failed := object.union(ending.containers[0], {"exitCode": 1, "ended": false})
	ended([failed, proxy({})], {"restartPolicy": "OnFailure"}).stop == []
	ended([object.union(failed, {"ended": true}), proxy({})], {"restartPolicy": "OnFailure"}).stop == ["proxy"]
	ended([ending.containers[0], proxy({})], {"restartPolicy": "OnFailure"}).stop == ["proxy"]
}

test_on_a_virtual_node_by_another_image if {
	answer := ended([ending.containers[0], proxy({"endImage": "exit:1"})], {"virtual": true})
	answer == {"stop": [], "images": {"proxy": "exit:1"}, "phase": "", "holds": []}
}

test_an_exit_code_that_is_ignored if {
	ended([ending.containers[0], proxy({"ignoreExitCode": true})], {}) == {"stop": ["proxy"], "images": {}, "phase": "Succeeded", "holds": []}

	failed := object.union(ending.containers[0], {"exitCode": 1})
	ended([failed, proxy({"ignoreExitCode": true})], {}).phase == "Failed"
}
