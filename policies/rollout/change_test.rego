package rollout_test

import future.keywords.not

import data.rollout

template := {
	"workload": {"kind": "CloneSet", "namespace": "shop", "name": "web"},
	"policy": "InPlaceIfPossible",
	"from": "web-1",
	"to": "web-2",
	"known": true,
	"changes": [{"class": "image", "op": "replace", "path": "/spec/containers/0/image", "container": "main"}],
	"qosChanged": false,
	"claimsChanged": false,
	"gates": {"verticalScaling": false, "recreateOnNewClaims": false, "envFromMetadata": true, "nodeAgent": true},
}

resources := {"class": "resources", "op": "replace", "path": "/spec/containers/0/resources/limits/cpu"}

command := {"class": "other", "op": "add", "path": "/spec/containers/0/command"}

# What becomes of a pod where possible, and where it must be in place.
ways(facts) := [action |
	some policy in ["InPlaceIfPossible", "InPlaceOnly"]
	action := rollout.change.action with input as object.union(template, object.union(facts, {"policy": policy}))
]

reason(facts) := answer if {
	answer := rollout.change.reason with input as object.union(template, facts)
}

test_an_image_changes_in_place if ways({}) == ["InPlace", "InPlace"]

test_equal_templates_are_in_place if {
	ways({"changes": []}) == ["InPlace", "InPlace"]
	reason({"changes": []}) == "NothingChanged"
}

test_recreate_is_always_recreate if {
	rollout.change.action == "Recreate" with input as object.union(template, {"policy": "ReCreate", "changes": []})
}

test_a_policy_that_is_not_known_changes_nothing if {
	rollout.change.action == "Reject" with input as object.union(template, {"policy": "Blue"})
	rollout.change.action == "Reject" with input as {}
}

test_facts_that_are_missing_are_obstacles if {
	rollout.change.action == "Recreate" with input as {"policy": "InPlaceIfPossible", "from": "a", "to": "b"}
}

test_a_restart_recreates_unless_nothing_may if {
	ways({"restartRequested": true}) == ["Recreate", "InPlace"]
	reason({"restartRequested": true}) == "RestartRequested"
	reason({"restartRequested": true, "changes": [command]}) == "NotInPlace"
}

test_obstacles_recreate_or_reject if {
	every obstacle, facts in {
		"RevisionUnknown": {"known": false},
		"VolumeClaimsChanged": {"claimsChanged": true, "gates": {"recreateOnNewClaims": true}, "workload": {"kind": "StatefulSet"}},
		"NotInPlace": {"changes": [command]},
		"VerticalScalingDisabled": {"changes": [resources]},
		"QoSClassChanged": {"changes": [resources], "qosChanged": true, "gates": {"verticalScaling": true}},
		"NodeAgentNeeded": {"envRefresh": ["main"], "gates": {"nodeAgent": false}},
	} {
		ways(facts) == ["Recreate", "Reject"]
		reason(facts) == obstacle
	}
}

test_a_pod_of_a_daemonset_needs_the_readiness_gate if {
	reason({"ungated": true, "known": false, "workload": {"kind": "DaemonSet"}}) == "NoReadinessGate"
	ways({"ungated": true}) == ["InPlace", "InPlace"]
	ways({"workload": {"kind": "DaemonSet"}}) == ["InPlace", "InPlace"]
}

test_an_env_is_refreshed_behind_the_readiness_gate if {
	reason({"ungated": true, "envRefresh": ["main"]}) == "NoReadinessGate"
	ways({"ungated": true, "envRefresh": ["main"]}) == ["Recreate", "Reject"]
	ways({"envRefresh": ["main"]}) == ["InPlace", "InPlace"]
	ways({"ungated": true, "envRefresh": ["main"], "gates": {"envFromMetadata": false}}) == ["InPlace", "InPlace"]
	reason({"ungated": true, "envRefresh": ["main"], "gates": {"nodeAgent": false}}) == "NodeAgentNeeded"
}

test_the_first_obstacle_gives_the_reason if {
	reason({"known": false, "changes": [command]}) == "RevisionUnknown"
	reason({"changes": [resources, command]}) == "VerticalScalingDisabled"
	reason({"changes": [resources, command], "gates": {"verticalScaling": true}, "qosChanged": true}) == "NotInPlace"
}

test_a_cloneset_in_place_only_ignores_claims if {
	ways({"claimsChanged": true, "gates": {"recreateOnNewClaims": true}}) == ["Recreate", "InPlace"]
	ways({"claimsChanged": true}) == ["InPlace", "InPlace"]
}

claim := {"claim": "data-db-0", "template": "data", "what": "size", "from": "1Gi", "to": "2Gi", "class": "fast"}

stuck(facts) := object.union(template, {"workload": {"kind": "StatefulSet", "namespace": "shop", "name": "db"}, "claims": [claim, object.union(claim, facts)]})

test_a_claim_that_can_grow_is_no_obstacle if {
	rollout.change.action == "Recreate" with input as object.union(stuck({}), {"policy": "ReCreate"})
	rollout.change.action == "InPlace" with input as stuck({})
}

test_a_pod_waits_for_a_claim_that_cannot_grow_whatever_its_policy if {
	every policy in ["ReCreate", "InPlaceIfPossible", "InPlaceOnly", "Blue"] {
		every obstacle in ["Immutable", "NotExpandable", "ClassNotFound"] {
			answer := rollout.change with input as object.union(stuck({"obstacle": obstacle}), {"policy": policy})
			answer.action == "Wait"
			answer.reason == "VolumeClaimsDiffer"
		}
	}
}

keeps_ready(facts, packages) if {
	rollout.change.keepReady with input as object.union(template, facts)
		with data.extend.rollout as packages
}

where_served := {"settings": {"readinessGate": "WhereServed"}}

test_the_gate_stays_open_where_no_service_selects_the_pod if {
	keeps_ready({"unserved": true}, {"a": where_served, "b": {"settings": {}}, "c": where_served})
}

test_the_gate_shuts if {
	every facts in [{}, {"unserved": false}, {"unserved": true, "envRefresh": ["main"]}, {"unserved": true, "changes": []}] {
		not keeps_ready(facts, {"a": where_served})
	}
	every packages in [{}, {"a": {}}, {"a": {"settings": {"readinessGate": "Always"}}}, {"a": where_served, "b": {"settings": {"readinessGate": 7}}}] {
		not keeps_ready({"unserved": true}, packages)
	}
}

test_a_pod_that_is_recreated_has_no_gate_to_keep if {
	not keeps_ready({"unserved": true, "policy": "ReCreate"}, {"a": where_served})
	not keeps_ready({"unserved": true, "changes": [command]}, {"a": where_served})
}
