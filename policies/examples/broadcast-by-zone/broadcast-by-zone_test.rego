package extend.placement.broadcast_by_zone_test

import future.keywords.not

import data.extend.placement.broadcast_by_zone

node(name, zone, state) := {"name": name, "state": state, "labels": {"topology.kubernetes.io/zone": zone}}

held(nodes) := {hold.target |
	some hold in broadcast_by_zone.hold with input as {"nodes": nodes, "counts": {"failed": 0, "succeeded": 0}}
}

test_the_first_zone_goes if held([node("a", "z1", "Waiting"), node("b", "z2", "Waiting"), node("c", "z3", "Waiting")]) == {"b", "c"}

test_a_zone_waits_for_pods_of_the_one_before if held([node("a", "z1", "Active"), node("b", "z2", "Waiting")]) == {"b"}

test_the_next_zone_goes_when_the_one_before_has_ended if held([node("a", "z1", "Succeeded"), node("d", "z1", "Failed"), node("b", "z2", "Waiting")]) == set()

test_nodes_without_a_zone_go_first if held([{"name": "x", "state": "Waiting"}, node("b", "z2", "Waiting")]) == {"b"}

stopped(failed, succeeded) if {
	some hold in broadcast_by_zone.hold with input as {"nodes": [], "counts": {"failed": failed, "succeeded": succeeded}}
	hold.reason == "TooManyFailed"
}

test_many_failures_stop_all if {
	stopped(3, 0)
	stopped(3, 26)
	not stopped(2, 0)
	not stopped(3, 27)
}

test_canaries_go_first if {
	broadcast_by_zone.rank == {"b": -1} with input as {"nodes": [node("a", "z1", "Waiting"), {"name": "b", "state": "Waiting", "labels": {"canary": "true"}}]}
}
