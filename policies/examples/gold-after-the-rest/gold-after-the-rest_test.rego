package override.rollout_test

import future.keywords.not

import data.override.rollout

gold := {"name": "web-a", "labels": {"tier": "gold"}}

tin := {"name": "web-b", "labels": {"tier": "tin"}}

plain := {"name": "web-c"}

order(pods, facts) := answer if {
	plan := object.union(
		{
			"workload": {"kind": "CloneSet"},
			"revisions": {"current": "web-1", "update": "web-2"},
			"update": 5,
			"counts": {"updated": 4, "updatedAvailable": 4},
		},
		facts,
	)
	answer := rollout.rows.order with input as {"plan": plan, "rows": pods}
}

test_the_rest_goes_in_its_order if order([plain, gold, tin], {}) == ["web-c", "web-b"]

test_gold_goes_when_nothing_else_is_left if order([gold], {}) == ["web-a"]

test_gold_waits_for_what_is_updated_to_be_available if {
	order([gold], {"counts": {"updatedAvailable": 3}}) == []
}

test_a_rollout_back_is_not_held if {
	order([gold, tin], {"update": -2, "counts": {"updatedAvailable": 0}}) == ["web-a", "web-b"]
	order([gold, tin], {"revisions": {"update": "web-1"}, "counts": {"updatedAvailable": 0}}) == ["web-a", "web-b"]
}

test_the_old_template_is_held_once_the_rollout_is_complete if {
	order([gold, tin], {"revisions": {"current": "web-2", "update": "web-1"}}) == ["web-b"]
	order([gold], {"revisions": {"current": "web-2", "update": "web-1"}, "counts": {"updatedAvailable": 3}}) == []
}

test_equal_revisions_of_other_kinds_are_no_rollout_back if {
	every kind in ["StatefulSet", "DaemonSet", "SidecarSet"] {
		order([gold, tin], {"workload": {"kind": kind}, "revisions": {"update": "web-1"}}) == ["web-b"]
	}
}

test_a_restart_is_no_rollout_back if order([gold, tin], {"revisions": {"update": "web-1"}, "restart": true}) == ["web-b"]

test_no_candidates_are_no_order if order([], {}) == []
