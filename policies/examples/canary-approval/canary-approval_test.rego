package extend.rollout.canary_approval_test

import future.keywords.not

import data.extend.rollout.canary_approval

question := {
	"workload": {"kind": "CloneSet", "namespace": "shop", "name": "web"},
	"revisions": {"current": "web-1", "update": "web-2"},
	"counts": {"total": 10, "updated": 2, "updatedAvailable": 2},
	"update": 8,
}

reasons(facts) := {hold.reason | some hold in answer} if {
	answer := canary_approval.hold with input as object.union(question, facts)
}

test_the_first_pods_begin_unasked if reasons({"counts": {"updated": 0, "updatedAvailable": 0}}) == set()

test_canaries_soak_until_they_are_available if reasons({"counts": {"updatedAvailable": 1}}) == {"CanarySoaking"}

test_available_canaries_wait_for_approval if {
	reasons({}) == {"CanaryApproval"}
	some hold in canary_approval.hold with input as question
	hold.message == "CloneSet shop/web waits for a person to approve revision web-2 by the annotation regatta.sh/approved-revision=web-2."
}

test_an_approved_revision_goes_on if {
	reasons({"workload": {"annotations": {"regatta.sh/approved-revision": "web-2"}}}) == set()
}

test_the_approval_of_another_revision_does_not_count if {
	reasons({"workload": {"annotations": {"regatta.sh/approved-revision": "web-1"}}}) == {"CanaryApproval"}
}

test_a_rollout_back_by_the_partition_waits_for_nobody if reasons({"update": -2}) == set()

test_a_rollout_back_by_the_old_template_waits_for_nobody if {
	reasons({"revisions": {"update": "web-1"}}) == set()
	reasons({"revisions": {"update": "web-1"}, "counts": {"updatedAvailable": 0}, "restart": false}) == set()
}

test_the_old_template_waits_once_the_rollout_is_complete if {
	reasons({"revisions": {"current": "web-2", "update": "web-1"}}) == {"CanaryApproval"}
}

test_equal_revisions_of_other_kinds_are_no_rollout_back if {
	every kind in ["StatefulSet", "DaemonSet", "SidecarSet", "UnitedDeployment"] {
		reasons({"workload": {"kind": kind}, "revisions": {"update": "web-1"}}) == {"CanaryApproval"}
	}
}

test_a_restart_is_no_rollout_back if reasons({"revisions": {"update": "web-1"}, "restart": true}) == {"CanaryApproval"}

test_a_rollout_that_has_arrived_waits_for_nobody if reasons({"update": 0}) == set()
