package extend.rollout.change_freeze_test

import future.keywords.not

import data.extend.rollout.change_freeze

# The tests beside use a calendar of their own; these look at the one that is shipped.

test_the_time_zone_is_known if {
	time.format([0, change_freeze.calendar.timezone, "2006"]) in {"1969", "1970"}
}

test_the_days_are_days if {
	every day in change_freeze.calendar.weekend {
		day in {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
	}
}

test_the_dates_are_dates if {
	every date, name in change_freeze.calendar.dates {
		time.parse_ns("2006-01-02", date) > 0
		name != ""
	}
}

test_the_hours_are_hours if {
	every hour in change_freeze.calendar.hours {
		regex.match(`^([01][0-9]|2[0-4]):[0-5][0-9]$`, hour)
	}
	change_freeze.calendar.hours.from < change_freeze.calendar.hours.to
}
