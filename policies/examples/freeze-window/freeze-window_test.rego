package extend.rollout.freeze_window_test

import future.keywords.not

import data.extend.rollout.freeze_window

shop := {
	"timezone": "Europe/Berlin",
	"weekly": [
		{"from": {"day": "Friday", "at": "16:00"}, "to": {"day": "Monday", "at": "06:00"}, "why": "the weekend"},
		{"from": {"day": "Wednesday", "at": "09:30"}, "to": {"day": "Wednesday", "at": "10:15"}, "why": "the payroll run"},
	],
	"dates": {"2026-12-24": "Christmas Eve"},
	"except": ["playground"],
}

holds(moment, facts) := answer if {
	answer := freeze_window.hold with data.extend.rollout.freeze_window.freeze as shop
		with input as object.union(
			{
				"now": time.parse_rfc3339_ns(moment), "update": 3,
				"revisions": {"current": "web-1", "update": "web-2"},
				"counts": {"updated": 2},
				"workload": {"kind": "CloneSet", "namespace": "shop", "name": "web"},
			},
			facts,
		)
}

until(moment) := [hold.until | some hold in holds(moment, {})]

test_before_and_after_a_window_rollouts_go_on if {
	until("2026-03-13T15:59:59+01:00") == []
	until("2026-03-16T06:00:00+01:00") == []
	until("2026-03-11T09:29:59+01:00") == []
	until("2026-03-11T10:15:00+01:00") == []
}

test_a_window_lasts_over_days_and_the_end_of_the_week if {
	until("2026-03-13T16:00:00+01:00") == ["2026-03-16T06:00:00+01:00"]
	until("2026-03-14T23:59:59+01:00") == ["2026-03-16T06:00:00+01:00"]
	until("2026-03-15T12:00:00+01:00") == ["2026-03-16T06:00:00+01:00"]
	until("2026-03-16T05:59:59+01:00") == ["2026-03-16T06:00:00+01:00"]
}

test_a_window_may_be_part_of_a_day if {
	until("2026-03-11T09:30:00+01:00") == ["2026-03-11T10:15:00+01:00"]
	until("2026-03-11T10:14:59+01:00") == ["2026-03-11T10:15:00+01:00"]
}

test_it_is_the_clock_of_the_zone_that_counts if {
	until("2026-03-13T15:00:00Z") == ["2026-03-16T06:00:00+01:00"]
	until("2026-07-10T13:59:59Z") == []
	until("2026-07-10T14:00:00Z") == ["2026-07-13T06:00:00+02:00"]
}

test_a_window_in_which_the_clocks_change_ends_by_the_clock_on_the_wall if {
	until("2026-03-27T18:00:00+01:00") == ["2026-03-30T06:00:00+02:00"]
	until("2026-10-23T18:00:00+02:00") == ["2026-10-26T06:00:00+01:00"]
}

test_a_date_is_frozen_until_midnight if {
	until("2026-12-23T23:59:59+01:00") == []
	until("2026-12-24T00:00:00+01:00") == ["2026-12-25T00:00:00+01:00"]
	until("2026-12-25T00:00:00+01:00") == []
}

test_messages_say_what_it_is_and_do_not_change_with_every_minute if {
	{hold.message | some hold in holds("2026-03-14T12:00:00+01:00", {})} == {"CloneSet shop/web is not updated during the weekend, from Friday 16:00 to Monday 06:00 (Europe/Berlin)."}
	{hold.message | some hold in holds("2026-12-24T12:00:00+01:00", {})} == {"CloneSet shop/web is not updated on 2026-12-24, which is Christmas Eve (Europe/Berlin)."}
}

test_a_rollout_back_and_an_excepted_namespace_go_on if {
	frozen({"update": -3}) == 0
	frozen({"revisions": {"update": "web-1"}}) == 0
	frozen({"workload": {"namespace": "playground"}}) == 0
}

# How many holds there are on a Saturday.
frozen(facts) := count(holds("2026-03-14T12:00:00+01:00", facts))

test_the_old_template_is_frozen_once_the_rollout_is_complete if {
	frozen({"revisions": {"current": "web-2", "update": "web-1"}, "counts": {"updated": 0}}) == 1
	frozen({"revisions": {"current": "web-2", "update": "web-1"}}) == 1
}

test_equal_revisions_of_other_kinds_are_no_rollout_back if {
	every kind in ["StatefulSet", "DaemonSet", "SidecarSet", "UnitedDeployment"] {
		frozen({"workload": {"kind": kind}, "revisions": {"update": "web-1"}}) == 1
	}
}

test_a_restart_and_a_workload_spread_are_no_rollout_back if {
	frozen({"revisions": {"update": "web-1"}, "restart": true}) == 1
	frozen({"revisions": {"current": "", "update": ""}, "counts": {"updated": 0}}) == 1
}

# The rest looks at the data that is shipped.
shipped := data.extend.rollout.freeze_window.freeze

test_the_time_zone_that_is_shipped_is_known if time.format([0, shipped.timezone, "2006"]) in {"1969", "1970"}

test_the_windows_that_are_shipped_have_days_and_times if {
	count(shipped.weekly) > 0
	every window in shipped.weekly {
		every moment in [window.from, window.to] {
			moment.day in object.keys(freeze_window.days)
			regex.match(`^([01][0-9]|2[0-3]):[0-5][0-9]$`, moment.at)
		}
		window.why != ""
	}
}

test_the_dates_that_are_shipped_are_dates if {
	every date, name in shipped.dates {
		time.parse_ns("2006-01-02", date) > 0
		name != ""
	}
}
