package extend.rollout.new_sidecar_in_zone_a_test

import data.extend.rollout.new_sidecar_in_zone_a

held(kind, annotations) := {hold.where.zone | some hold in holds} if {
	holds := new_sidecar_in_zone_a.hold with input as {
		"workload": {"kind": kind, "name": "mesh", "annotations": annotations},
		"revisions": {"current": "mesh-1", "update": "mesh-2"},
		"groups": {"zone": {"a": {"total": 2}, "b": {"total": 1}, "": {"total": 1}}},
	}
}

test_other_zones_wait if {
	held("SidecarSet", {}) == {"b", ""}
	holds := new_sidecar_in_zone_a.hold with input as {"workload": {"kind": "SidecarSet", "name": "mesh"}, "revisions": {"update": "mesh-2"}, "groups": {"zone": {"b": {}}}}
	count(holds) == 1
}

test_they_go_on_when_the_revision_has_passed if held("SidecarSet", {"shop.example/zone-a-passed": "mesh-2"}) == set()

test_another_revision_has_not_passed if held("SidecarSet", {"shop.example/zone-a-passed": "mesh-1"}) == {"b", ""}

test_other_kinds_are_left_alone if held("CloneSet", {}) == set()
