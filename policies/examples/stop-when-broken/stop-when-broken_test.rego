package extend.rollout.stop_when_broken_test

import data.extend.rollout.stop_when_broken

holds(available, update) := {hold.message | some hold in answer} if {
	answer := stop_when_broken.hold with stop_when_broken.broken as 3
		with input as {
			"workload": {"kind": "CloneSet", "namespace": "shop", "name": "web"},
			"revisions": {"current": "web-1", "update": "web-2"},
			"counts": {"total": 10, "updated": 5, "updatedAvailable": available},
			"update": update,
		}
}

test_new_pods_that_become_available_do_not_stop_it if {
	holds(5, 5) == set()
	holds(3, 5) == set()
}

test_three_that_do_not_stop_it if {
	holds(2, 5) == {"CloneSet shop/web has 3 or more pods of revision web-2 that are not available, so no more are updated."}
	holds(0, 5) == holds(2, 5)
}

test_the_way_back_by_a_higher_partition_is_open if holds(0, -5) == set()

test_the_way_back_by_the_old_template_waits_for_pods_of_the_old_revision if {
	back := {
		"workload": {"kind": "CloneSet", "namespace": "shop", "name": "web"},
		"revisions": {"current": "web-1", "update": "web-1"},
		"counts": {"total": 10, "updated": 5, "updatedAvailable": 2},
		"update": 5,
	}
	count(stop_when_broken.hold) == 1 with input as back
	stop_when_broken.hold == set() with input as object.union(back, {"counts": {"updatedAvailable": 3}})
}

test_the_number_that_is_shipped_lets_a_rollout_begin if stop_when_broken.broken > 0
