package extend.protection.gold_fridays_test

import future.keywords.not

import data.extend.protection.gold_fridays
import data.protection

# A gold pod, asked about at a time, with something else than usual.
asked(moment, facts) := object.union(
	{
		"now": time.parse_rfc3339_ns(moment),
		"request": {"operation": "DELETE", "user": {"name": "ann", "groups": ["system:authenticated"]}},
		"object": {"resource": "pods", "kind": "Pod", "namespace": "shop", "name": "web-1", "labels": {"app": "web", "shop.example/tier": "gold"}},
	},
	facts,
)

denied(facts) if {
	denials := gold_fridays.deny with input as facts
	count(denials) == 1
}

test_a_gold_pod_stays_on_friday_by_the_clock_of_its_zone if {
	denied(asked("2026-03-13T12:00:00+01:00", {}))
	denied(asked("2026-03-12T23:00:00Z", {}))
	not denied(asked("2026-03-13T23:00:00Z", {}))
	not denied(asked("2026-03-12T22:59:59Z", {}))
}

test_an_eviction_is_a_deletion_and_an_update_is_not if {
	denied(asked("2026-03-13T12:00:00Z", {"request": {"operation": "EVICT"}}))
	not denied(asked("2026-03-13T12:00:00Z", {"request": {"operation": "UPDATE"}}))
}

test_other_pods_and_other_kinds_go if {
	not denied(asked("2026-03-13T12:00:00Z", {"object": {"labels": {"shop.example/tier": "tin"}}}))
	not denied(asked("2026-03-13T12:00:00Z", {"object": {"kind": "Service"}}))
}

test_controllers_may if {
	not denied(asked("2026-03-13T12:00:00Z", {"request": {"user": {"groups": ["system:serviceaccounts:kube-system"]}}}))
}

test_the_whole_decision_says_why if {
	answer := protection.budget with input as object.union(asked("2026-03-13T12:00:00Z", {}), {"pod": {"ready": true, "consistent": true}})
	answer.reasons == [{"rule": "gold-fridays.closed", "reason": "GoldStaysToday", "message": "Pod shop/web-1 is gold and stays on Fridays (Europe/Berlin). Try again tomorrow."}]
}

test_the_api_server_asks_about_gold_pods if {
	[guard] := protection.guards.guards with input as {"gates": {"deletion": true}}
	[guard.resource, guard.operations, guard.labels] == ["pods", ["DELETE", "EVICT"], {"shop.example/tier": "gold"}]
}

test_the_day_and_the_time_zone_are_known if {
	gold_fridays.gold.day in {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
	time.format([0, gold_fridays.gold.timezone, "2006"]) in {"1969", "1970"}
}
