package rollout_test

import future.keywords.not

import data.rollout

calm := {"name": "calm", "assigned": 1, "phase": 2, "ready": 1, "readySince": 9, "restarts": 0, "created": 5, "orderLevel": -1, "orderValue": 0, "zone": "a"}

busy := object.union(calm, {"name": "busy", "matches": [0, 1], "orderLevel": 1, "orderValue": 7, "state": "PreparingUpdate", "zone": "b"})

pods_ranked(strategy) := answer if {
	answer := rollout.rank with input as {"strategy": strategy, "pods": [calm, busy]}
}

test_the_default_order_is_by_what_is_lost if {
	answer := pods_ranked({})
	answer.keys == [[1, 2, 1, 9, 0, 5], [1, 2, 1, 9, 0, 5]]
	answer.descending == [3, 4, 5]
}

test_weights_are_summed_ahead_of_it if {
	answer := pods_ranked({"weights": [3, 4], "orderKeys": ["tier"]})
	answer.keys == [[0, 1, 2, 1, 9, 0, 5], [7, 1, 2, 1, 9, 0, 5]]
	answer.descending == [0, 4, 5, 6]
}

test_order_is_by_level_and_number_ahead_of_it if {
	answer := pods_ranked({"orderKeys": ["tier", "shard"]})
	answer.keys == [[-1, 0, 1, 2, 1, 9, 0, 5], [1, 7, 1, 2, 1, 9, 0, 5]]
	answer.descending == [1, 5, 6, 7]
}

test_pods_that_prepare_lead if pods_ranked({}).lead == [[0], [-1]]

test_pods_of_which_none_prepares_lead_alike if {
	rollout.rank.lead == [[0], [0]] with input as {"strategy": {}, "pods": [calm, calm]}
}

test_users_lead_in_the_order_of_their_packages if {
	answer := pods_ranked({}) with data.extend.rollout as {"b": {"rank": {"calm": 2}}, "a": {"rank": {"busy": -3, "calm": "x"}}}
	answer.lead == [[0, 0, 2], [-1, -3, 0]]
}

test_users_hold_pods_by_name if {
	answer := pods_ranked({}) with data.extend.rollout as {"a": {"hold": [
		{"reason": "R", "message": "M.", "pod": "calm"},
		{"reason": "R", "message": "M.", "pod": "gone"},
		{"reason": "R", "message": "M.", "where": {"zone": "b"}},
	]}}
	[[hold.pod, hold.rule] | some hold in answer.holds] == [["calm", "extend.rollout.a"]]
}

test_a_hold_that_is_malformed_holds_every_pod if {
	answer := pods_ranked({}) with data.extend.rollout as {"a": {"hold": [{"reason": "R"}]}}
	{hold.pod | some hold in answer.holds} == {"calm", "busy"}
}

test_without_facts_no_pod_has_a_key if {
	rollout.rank == {"keys": [], "descending": [], "lead": [], "holds": []} with input as {}
}

test_pods_of_nodes_stay_as_they_are_given if {
	every strategy in [{}, {"weights": [3, 4]}, {"orderKeys": ["tier"]}] {
		answer := rollout.rank with input as {"workload": {"kind": "DaemonSet"}, "strategy": strategy, "pods": [calm, busy]}
		[answer.keys, answer.descending] == [[[0], [0]], []]
	}
}

test_facts_of_a_node_change_no_order if {
	answer := rollout.rank with input as {"strategy": {}, "pods": [
		object.union(calm, {"onNode": {"created": 5}}),
		object.union(busy, {"onNode": {"unschedulable": true}}),
	]}
	answer == pods_ranked({})
}

numbered(strategy) := answer if {
	answer := rollout.rank with input as {"strategy": strategy, "pods": [
		object.union(calm, {"name": "db-0", "ordinal": 0, "matches": [0]}),
		object.union(busy, {"name": "db-1", "ordinal": 1}),
	]}
}

test_an_ordered_strategy_goes_by_ordinals_whatever_the_priority if {
	answer := numbered({"ordered": true, "weights": [3, 4]})
	[answer.keys, answer.descending] == [[[0], [1]], [0]]
}

test_numbered_pods_without_a_priority_go_by_ordinals if {
	answer := numbered({})
	[answer.keys, answer.descending] == [[[0], [1]], [0]]
}

test_ordinals_decide_between_pods_of_one_priority if {
	weighed := numbered({"weights": [3, 4]})
	[weighed.keys, weighed.descending] == [[[3, 0], [7, 1]], [0, 1]]
	ordered := numbered({"orderKeys": ["tier"]})
	[ordered.keys, ordered.descending] == [[[-1, 0, 0], [1, 7, 1]], [1, 2]]
}

# Pods of one name in two namespaces, of a workload that has none.
twins := [object.union(calm, {"name": "web-0", "namespace": namespace, "namespacedName": concat("/", [namespace, "web-0"])}) |
	some namespace in ["a", "b"]
]

twins_ranked(pods, packages) := answer if {
	answer := rollout.rank with input as {"strategy": {}, "workload": {"namespace": ""}, "pods": pods}
		with data.extend.rollout as packages
}

test_a_hold_with_a_namespace_holds_the_pod_in_it if {
	answer := twins_ranked(twins, {"x": {"hold": [object.union(sound, {"pod": "web-0", "namespace": "b"})]}})
	[[hold.namespace, hold.pod] | some hold in answer.holds] == [["b", "web-0"]]
	twins_ranked(twins, {"x": {"hold": [object.union(sound, {"pod": "web-0", "namespace": "c"})]}}).holds == []
	twins_ranked(twins, {"x": {"hold": [object.union(sound, {"pod": "web-1", "namespace": "b"})]}}).holds == []
}

test_a_hold_without_a_namespace_holds_each_pod_of_the_name if {
	answer := twins_ranked(twins, {"x": {"hold": [object.union(sound, {"pod": "web-0"})]}})
	[[object.get(hold, "namespace", ""), hold.pod] | some hold in answer.holds] == [["", "web-0"]]
}

test_a_malformed_hold_of_a_namespace_holds_the_pods_in_it if {
	answer := twins_ranked(twins, {"x": {"hold": [{"namespace": "b"}]}})
	[[hold.namespace, hold.pod] | some hold in answer.holds] == [["b", "web-0"]]
}

test_a_hold_of_a_whole_namespace_is_for_the_plan if {
	twins_ranked(twins, {"x": {"hold": [object.union(sound, {"namespace": "b"})]}}).holds == []
}

test_users_rank_by_name_with_a_namespace_or_without if {
	twins_ranked(twins, {"x": {"rank": {"b/web-0": -1}}}).lead == [[0, 0], [0, -1]]
	twins_ranked(twins, {"x": {"rank": {"web-0": -1}}}).lead == [[0, -1], [0, -1]]
	twins_ranked(twins, {"x": {"rank": {"web-0": -1, "b/web-0": 3}}}).lead == [[0, -1], [0, 3]]
}

test_of_two_pods_of_one_name_the_one_that_prepares_leads if {
	twins_ranked([twins[0], object.union(twins[1], {"state": "PreparingUpdate"})], {}).lead == [[0], [-1]]
}
