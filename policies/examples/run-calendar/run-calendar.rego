# METADATA
# title: Run calendar
# description: |
#   Runs of AdvancedCronJobs that are due in busy hours wait for their end, and those that
#   are due on dates that have a name are left out.
package extend.rollout.run_calendar

import future.keywords.not

# METADATA
# title: When runs start
# description: |
#   Edit this. Dates are written 2026-12-24, times 09:00 to 24:00, and all of them are meant
#   in the time zone.
# labels:
#   id: run-calendar.calendar
calendar := {
	"timezone": "Europe/Berlin",
	"busy": {"from": "09:00", "to": "17:00"},
	"dates": {"2026-12-24": "Christmas Eve", "2026-12-25": "Christmas Day"},
	# AdvancedCronJobs of these namespaces run whenever they are due.
	"except": ["playground"],
}

# METADATA
# title: Busy hours
# description: The run waits, and starts at the end of the busy hours by itself.
# labels:
#   id: run-calendar.busy
hold contains {
	"rule": "run-calendar.busy",
	"reason": "BusyHours",
	"message": sprintf("Runs of %s wait for %s (%s).", [job, calendar.busy.to, calendar.timezone]),
	"until": time.format([at(calendar.busy.to), calendar.timezone, "2006-01-02T15:04:05Z07:00"]),
	"run": "Wait",
} if {
	kept
	clock := time.format([input.now, calendar.timezone, "15:04"])
	clock >= calendar.busy.from
	clock < calendar.busy.to
}

# METADATA
# title: Dates that have a name
# description: A run that is due on one of them is left out, also if it is asked about later.
# labels:
#   id: run-calendar.date
hold contains {
	"rule": "run-calendar.date",
	"reason": "NoRunsToday",
	"message": sprintf("%s does not run on %s, which is %s (%s).", [job, date, calendar.dates[date], calendar.timezone]),
	"run": "Skip",
} if {
	kept
	date := time.format([input.run.scheduled, calendar.timezone, "2006-01-02"])
	calendar.dates[date]
}

# Rollouts have no run: they are not held.
kept if {
	input.run.scheduled > 0
	not input.workload.namespace in calendar.except
}

job := sprintf("AdvancedCronJob %s/%s", [input.workload.namespace, input.workload.name])

today := time.format([input.now, calendar.timezone, "2006-01-02"])

# A time of today with the offset from UTC that the zone has now.
at(clock) := time.parse_ns(
	"2006-01-02 15:04 -07:00",
	sprintf("%s %s %s", [today, clock, time.format([input.now, calendar.timezone, "-07:00"])]),
)
