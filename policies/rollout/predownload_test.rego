package rollout_test

import data.rollout

ahead := {
	"workload": {"replicas": 10}, "strategy": {"type": "RollingUpdate", "partition": 0}, "revisions": {"update": "web-2"},
	"change": "InPlace", "maxUnavailable": 2, "updatedReady": 0, "minUpdatedReady": 0, "images": [{"container": "app", "image": "nginx:2", "was": "nginx:1"}],
}

predownload_of(facts) := answer if {
	answer := rollout.predownload with input as object.union(ahead, facts)
}

test_images_are_pulled_ahead_of_an_update_in_place if predownload_of({}).action == "Pull"

test_without_facts_nothing_is_pulled if {
	answer := rollout.predownload with input as {}
	answer.action == "Wait"
}

test_a_change_that_is_not_decided_is_asked_again if predownload_of({"change": "Wait"}).action == "Wait"

test_few_replicas_need_none if predownload_of({"workload": {"replicas": 3}}).reason == "FewReplicas"

test_pods_that_are_recreated_on_their_nodes_find_the_images if predownload_of({"change": "Recreate", "sameNode": true}).reason == "SameNode"

test_few_replicas_on_nodes_of_their_own_have_images_pulled if predownload_of({"workload": {"replicas": 1}, "maxUnavailable": 0, "sameNode": true}).action == "Pull"
