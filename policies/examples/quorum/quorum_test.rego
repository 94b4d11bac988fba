package extend.rollout.quorum_test

import future.keywords.not

import data.extend.rollout.quorum

workload(replicas) := {"kind": "StatefulSet", "namespace": "shop", "name": "db", "replicas": replicas, "labels": {"shop.example/quorum": "true"}}

reasons(replicas, unavailable) := {hold.reason | some hold in holds} if {
	holds := quorum.hold with input as {"workload": workload(replicas), "maxUnavailable": unavailable}
}

test_a_majority_stays if {
	every numbers in [[3, 1], [4, 1], [5, 2], [7, 3], [1, 1], [2, 1]] {
		reasons(numbers[0], numbers[1]) == set()
	}
	every numbers in [[3, 2], [4, 2], [5, 3], [7, 4]] {
		reasons(numbers[0], numbers[1]) == {"QuorumAtRisk"}
	}
}

pods := [
	{"name": "db-0", "updated": false, "labels": {"shop.example/role": "leader"}},
	{"name": "db-1", "updated": false},
	{"name": "db-2", "updated": false, "labels": {"shop.example/role": "follower"}},
]

held(all) := {hold.pod: hold.message | some hold in holds} if {
	holds := quorum.hold with input as {"workload": workload(3), "pods": all}
}

test_the_leader_waits_for_the_others if {
	held(pods) == {"db-0": "Pod db-0 leads (label shop.example/role=leader), so it is updated after the others."}
}

test_the_leader_goes_when_it_is_left if {
	held([pods[0]]) == {}
	held([pods[0], object.union(pods[1], {"updated": true})]) == {}
}

test_other_workloads_are_left_alone if {
	holds := quorum.hold with input as {"workload": {"kind": "CloneSet", "replicas": 3}, "maxUnavailable": 3, "pods": pods}
	holds == set()
}
