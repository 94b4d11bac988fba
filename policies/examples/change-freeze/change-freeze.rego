# METADATA
# title: Change freeze
# description: |
#   No pod is updated at the weekend, on dates that have a name, and out of working
#   hours. Pods that are being updated finish; scaling goes on.
package extend.rollout.change_freeze

import future.keywords.not

# METADATA
# title: Closed now
# description: |
#   The hold names when it ends, so that the rollout goes on at that time by
#   itself. Its message changes when the cause does, not with every minute.
# labels:
#   id: change-freeze.closed
hold contains {
	"rule": "change-freeze.closed",
	"reason": "ChangeFreeze",
	"message": sprintf("The change freeze holds %s %s/%s because %s; it ends at %s.", [input.workload.kind, input.workload.namespace, input.workload.name, cause, until]),
	"until": until,
} if {
	not input.workload.namespace in calendar.except
	until := time.format([min(opening), calendar.timezone, "2006-01-02T15:04:05Z07:00"])
}

cause := sprintf("%s is %s", [today, calendar.dates[today]]) if {
	calendar.dates[today]
} else := sprintf("%s is not a working day", [weekday]) if {
	weekday in calendar.weekend
} else := sprintf("it is not between %s and %s (%s)", [calendar.hours.from, calendar.hours.to, calendar.timezone]) if {
	not in_hours
}

in_hours if {
	clock := time.format([input.now, calendar.timezone, "15:04"])
	clock >= calendar.hours.from
	clock < calendar.hours.to
}

today := time.format([input.now, calendar.timezone, "2006-01-02"])

weekday := time.weekday([input.now, calendar.timezone])

# METADATA
# title: When working hours begin
# description: |
#   On each of the next sixty working days. Should none of them be one, the
#   question is asked again after sixty days.
# labels:
#   id: change-freeze.opening
opening contains ns if {
	some days in numbers.range(0, 60)

	# Noon in UTC, so that days are counted as in a calendar when clocks change.
	noon := time.add_date(time.parse_ns("2006-01-02 15:04", concat(" ", [today, "12:00"])), 0, 0, days)
	date := time.format([noon, "UTC", "2006-01-02"])
	not calendar.dates[date]
	not time.weekday(noon) in calendar.weekend

	# Twice, since the clocks may change between the opening and noon.
	ns := at(date, at(date, noon))
	ns > input.now
}

opening contains time.add_date(input.now, 0, 0, 60)

# The begin of working hours on a date, with the offset from UTC that the zone has at a time near it.
at(date, near) := time.parse_ns(
	"2006-01-02 15:04 -07:00",
	sprintf("%s %s %s", [date, calendar.hours.from, time.format([near, calendar.timezone, "-07:00"])]),
)
