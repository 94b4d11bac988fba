package extend.rollout.wait_for_dependency_test

import data.extend.rollout.wait_for_dependency

# It is 1700000000, and two hours are 7200.
holds(annotations, update) := answer if {
	answer := wait_for_dependency.hold with input as {
		"now": 1700000000000000000,
		"update": update,
		"workload": {"kind": "CloneSet", "namespace": "shop", "name": "web", "annotations": annotations},
	}
}

test_it_waits_for_a_dependency_that_began_an_hour_ago if {
	holds({"rolling.shop.example/db": "1699996400"}, 5) == {{
		"rule": "wait-for-dependency.rolling",
		"reason": "DependencyRolling",
		"message": "CloneSet shop/web waits while db is being rolled out (annotation rolling.shop.example/db).",
		"until": "2023-11-14T23:13:20Z",
	}}
}

test_it_waits_for_each_of_several if {
	count(holds({"rolling.shop.example/db": "1699996400", "rolling.shop.example/queue": "1699996400"}, 5)) == 2
}

test_it_does_not_wait_for_ever if {
	holds({"rolling.shop.example/db": "1699992800"}, 5) == set()
	count(holds({"rolling.shop.example/db": "1699992801"}, 5)) == 1
}

test_a_time_that_cannot_be_read_holds_until_it_is_taken_off if {
	every value in ["", "yes", "2023-11-14", "-1", "999999999999999999999999"] {
		some hold in holds({"rolling.shop.example/db": value}, 5)
		hold.message == "CloneSet shop/web waits while db is being rolled out. The annotation rolling.shop.example/db does not say since when, so it does not end by itself."
	}
}

test_other_annotations_and_rollouts_back_go_on if {
	holds({"shop.example/team": "pay"}, 5) == set()
	holds({"rolling.shop.example/db": "1699996400"}, -5) == set()
	holds({"rolling.shop.example/db": "yes"}, -5) == set()
}
