package extend.placement.no_debug_in_gold_test

import data.extend.placement.no_debug_in_gold

pods := [{"name": "web-0", "labels": {"tier": "gold"}}, {"name": "web-1", "labels": {"tier": "silver"}}, {"name": "web-2"}]

denied(job, containers) := {[deny.rule, object.get(deny, "target", "")] |
	some deny in no_debug_in_gold.deny with input as {"job": job, "containers": containers, "pods": pods}
}

test_gold_without_a_ticket if denied({"name": "look"}, []) == {["no-debug-in-gold", "web-0"]}

test_a_ticket_opens_gold if denied({"annotations": {"ticket": "INC-7"}}, [{"name": "dbg"}]) == set()

test_no_ticket_is_none if denied({"annotations": {"ticket": "please"}}, []) == {["no-debug-in-gold", "web-0"]}

test_privileged_never if {
	denied({"annotations": {"ticket": "INC-7"}}, [{"name": "dbg", "privileged": true}]) == {["no-debug-in-gold.privileged", ""]}
}
