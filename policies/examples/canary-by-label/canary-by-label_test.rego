package extend.rollout.canary_by_label_test

import future.keywords.not

import data.extend.rollout.canary_by_label

workload(annotations) := {"kind": "CloneSet", "namespace": "shop", "name": "web", "annotations": annotations}

by_label := {"shop.example/canary": "by-label"}

passed(revision) := object.union(by_label, {"shop.example/canary-passed": revision})

pods := [
	{"name": "web-a", "labels": {"shop.example/canary": "true"}, "updated": false},
	{"name": "web-b", "labels": {"shop.example/canary": "no"}, "updated": false},
	{"name": "web-c", "updated": false},
	{"name": "web-d", "updated": true},
]

held(annotations) := {hold.pod | some hold in holds} if {
	holds := canary_by_label.hold with input as {"workload": workload(annotations), "pods": pods}
}

planned(annotations, update) := {hold.message | some hold in holds} if {
	holds := canary_by_label.hold with input as {"workload": workload(annotations), "update": update, "revisions": {"current": "web-1", "update": "web-2"}}
}

test_all_but_canaries_wait if {
	held(by_label) == {"web-b", "web-c"}
	some hold in canary_by_label.hold with input as {"workload": workload(by_label), "pods": pods}
	hold.message == "CloneSet shop/web updates the pods with the label shop.example/canary=true first; the others wait until the annotation shop.example/canary-passed names the revision."
}

test_an_empty_annotation_says_nothing if held(passed("")) == {"web-b", "web-c"}

test_all_go_when_the_canaries_have_passed if {
	held(passed("web-2")) == set()
	planned(passed("web-2"), 5) == set()
}

test_canaries_of_another_revision_do_not_count if {
	planned(passed("web-1"), 5) == {"CloneSet shop/web says that the canaries of revision web-1 have passed, and this is web-2. Take the annotation off: kubectl annotate cloneset web -n shop shop.example/canary-passed-"}
}

test_the_plan_holds_nobody_else if planned(by_label, 5) == set()

test_a_rollout_back_goes_on if planned(passed("web-1"), -5) == set()

test_a_workload_that_does_not_ask_for_it_goes_on if held({}) == set()
