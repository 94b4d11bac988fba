package extend.node.two_pulls_a_zone_test

import data.extend.node.two_pulls_a_zone

job(labels, zones) := {"job": {"name": "warm", "image": "nginx", "tag": "1.28", "labels": labels}, "groups": {"zone": zones}}

rooms(labels, zones) := answer if {
	holds := two_pulls_a_zone.hold with input as job(labels, zones)
	answer := {hold.where.zone: hold.room | some hold in holds}
}

test_each_zone_has_room_for_two if rooms({}, {"a": {"busy": 0}, "b": {"busy": 1}, "c": {"busy": 3}}) == {"a": 2, "b": 1, "c": -1}

test_a_job_that_is_urgent_waits_for_none if rooms({"urgent": "true"}, {"a": {"busy": 3}}) == {}

test_the_message_names_the_zone_and_the_image if {
	some hold in two_pulls_a_zone.hold with input as job({}, {"a": {"busy": 2}})
	hold.message == "Nodes of zone a wait to pull nginx:1.28: two nodes of a zone pull at once."
}
