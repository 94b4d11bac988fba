package extend.rollout.change_freeze_test

import future.keywords.not

import data.extend.rollout.change_freeze

shop := {
	"timezone": "Europe/Berlin",
	"weekend": ["Saturday", "Sunday"],
	"hours": {"from": "09:00", "to": "17:00"},
	"dates": {"2026-12-24": "Christmas Eve", "2026-12-25": "Christmas Day"},
	"except": ["playground"],
}

holds_at(moment) := holds_in("shop", moment)

holds_in(namespace, moment) := holds if {
	holds := change_freeze.hold with change_freeze.calendar as shop
		with input as {"now": time.parse_rfc3339_ns(moment), "workload": {"kind": "CloneSet", "namespace": namespace, "name": "web"}}
}

until(moment) := [hold.until | some hold in holds_at(moment)]

test_in_working_hours_rollouts_go_on if {
	holds_at("2026-03-10T09:00:00+01:00") == set()
	holds_at("2026-03-10T16:59:59+01:00") == set()
	holds_at("2026-07-10T07:00:00Z") == set()
}

test_before_and_after_hours_the_next_opening_is_waited_for if {
	until("2026-03-10T08:59:59+01:00") == ["2026-03-10T09:00:00+01:00"]
	until("2026-03-10T17:00:00+01:00") == ["2026-03-11T09:00:00+01:00"]
	until("2026-03-10T23:30:00Z") == ["2026-03-11T09:00:00+01:00"]
}

test_at_the_weekend_monday_is_waited_for if {
	until("2026-03-14T12:00:00+01:00") == ["2026-03-16T09:00:00+01:00"]
	until("2026-03-13T20:00:00+01:00") == ["2026-03-16T09:00:00+01:00"]
}

test_dates_and_the_weekend_after_them_are_passed_over if {
	until("2026-12-24T12:00:00+01:00") == ["2026-12-28T09:00:00+01:00"]
	until("2026-12-23T18:00:00+01:00") == ["2026-12-28T09:00:00+01:00"]
}

test_when_the_clocks_change_hours_are_those_on_the_wall if {
	until("2026-03-28T12:00:00+01:00") == ["2026-03-30T09:00:00+02:00"]
	until("2026-10-24T12:00:00+02:00") == ["2026-10-26T09:00:00+01:00"]
	with_sundays := object.union(shop, {"weekend": []})
	{hold.until | some hold in change_freeze.hold} == {"2026-03-29T09:00:00+02:00"} with change_freeze.calendar as with_sundays
		with input as {"now": time.parse_rfc3339_ns("2026-03-29T01:00:00+01:00"), "workload": {"kind": "CloneSet", "namespace": "shop", "name": "web"}}
}

test_the_message_names_the_cause_and_the_end if {
	{hold.message | some hold in holds_at("2026-12-24T12:00:00+01:00")} == {"The change freeze holds CloneSet shop/web because 2026-12-24 is Christmas Eve; it ends at 2026-12-28T09:00:00+01:00."}
	{hold.message | some hold in holds_at("2026-03-14T12:00:00+01:00")} == {"The change freeze holds CloneSet shop/web because Saturday is not a working day; it ends at 2026-03-16T09:00:00+01:00."}
	{hold.message | some hold in holds_at("2026-03-10T20:00:00+01:00")} == {"The change freeze holds CloneSet shop/web because it is not between 09:00 and 17:00 (Europe/Berlin); it ends at 2026-03-11T09:00:00+01:00."}
}

test_a_namespace_may_be_excepted if holds_in("playground", "2026-12-24T12:00:00+01:00") == set()

test_a_freeze_without_an_end_is_looked_at_again_after_sixty_days if {
	closed := object.union(shop, {"weekend": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]})
	{hold.until | some hold in change_freeze.hold} == {"2026-05-09T13:00:00+02:00"} with change_freeze.calendar as closed
		with input as {"now": time.parse_rfc3339_ns("2026-03-10T12:00:00+01:00"), "workload": {"kind": "CloneSet", "namespace": "shop", "name": "web"}}
}
