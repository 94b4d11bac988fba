package extend.rollout.run_calendar_test

import data.extend.rollout.run_calendar

shop := {"timezone": "Europe/Berlin", "busy": {"from": "09:00", "to": "17:00"}, "dates": {"2026-12-24": "Christmas Eve"}, "except": ["playground"]}

holds(now, scheduled, namespace) := answer if {
	answer := run_calendar.hold with run_calendar.calendar as shop
		with input as {
			"now": time.parse_rfc3339_ns(now),
			"workload": {"kind": "AdvancedCronJob", "namespace": namespace, "name": "backup"},
			"run": {"scheduled": time.parse_rfc3339_ns(scheduled), "active": []},
		}
}

test_out_of_busy_hours_runs_start if {
	holds("2026-03-10T08:59:59+01:00", "2026-03-10T08:59:00+01:00", "shop") == set()
	holds("2026-03-10T17:00:00+01:00", "2026-03-10T12:00:00+01:00", "shop") == set()
}

test_in_busy_hours_they_wait_for_the_end if {
	some hold in holds("2026-07-10T12:00:00+02:00", "2026-07-10T12:00:00+02:00", "shop")
	hold.run == "Wait"
	hold.until == "2026-07-10T17:00:00+02:00"
	hold.message == "Runs of AdvancedCronJob shop/backup wait for 17:00 (Europe/Berlin)."
}

test_on_dates_they_are_left_out if {
	some hold in holds("2026-12-24T03:00:00+01:00", "2026-12-24T03:00:00+01:00", "shop")
	hold.run == "Skip"
	hold.message == "AdvancedCronJob shop/backup does not run on 2026-12-24, which is Christmas Eve (Europe/Berlin)."
}

test_a_run_of_such_a_date_is_left_out_on_the_next_day_too if {
	some hold in holds("2026-12-25T03:00:00+01:00", "2026-12-24T23:00:00+01:00", "shop")
	hold.reason == "NoRunsToday"
}

test_a_namespace_may_be_excepted if holds("2026-12-24T12:00:00+01:00", "2026-12-24T12:00:00+01:00", "playground") == set()

test_rollouts_go_on if {
	run_calendar.hold == set() with run_calendar.calendar as shop
		with input as {"now": time.parse_rfc3339_ns("2026-12-24T12:00:00+01:00"), "workload": {"kind": "CloneSet", "namespace": "shop", "name": "web"}, "update": 3}
}

test_the_calendar_that_is_shipped_can_be_read if {
	time.format([0, run_calendar.calendar.timezone, "2006"]) in {"1969", "1970"}
	run_calendar.calendar.busy.from < run_calendar.calendar.busy.to
	every date, name in run_calendar.calendar.dates {
		time.parse_ns("2006-01-02", date) > 0
		name != ""
	}
}
