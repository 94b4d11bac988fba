# METADATA
# title: Freeze window
# description: |
#   No pod is updated in windows of the week, such as from Friday afternoon to
#   Monday morning, and on dates that have a name. All of them are data.
package extend.rollout.freeze_window

import future.keywords.not

import data.extend.rollout.freeze_window.freeze

# METADATA
# title: In a window of the week
# description: The hold ends with the window, and the rollout goes on by itself.
# labels:
#   id: freeze-window.weekly
hold contains {
	"rule": "freeze-window.weekly",
	"reason": "FreezeWindow",
	"message": sprintf("%s is not updated during %s, from %s %s to %s %s (%s).", [workload, window.why, window.from.day, window.from.at, window.to.day, window.to.at, freeze.timezone]),
	"until": time.format([until, freeze.timezone, "2006-01-02T15:04:05Z07:00"]),
} if {
	frozen
	some window in freeze.weekly
	begin := second(window.from)
	length := ((second(window.to) - begin) + week) % week
	passed := (((clock + (days[today] * day)) - begin) + week) % week
	passed < length
	until := ends(floor(((clock + length) - passed) / day), window.to.at)
}

# METADATA
# title: On a date that has a name
# description: The hold ends with the day.
# labels:
#   id: freeze-window.date
hold contains {
	"rule": "freeze-window.date",
	"reason": "FreezeDate",
	"message": sprintf("%s is not updated on %s, which is %s (%s).", [workload, date, freeze.dates[date], freeze.timezone]),
	"until": time.format([ends(1, "00:00"), freeze.timezone, "2006-01-02T15:04:05Z07:00"]),
} if {
	frozen
	date := time.format([input.now, freeze.timezone, "2006-01-02"])
	freeze.dates[date]
}

# A rollout back heals, so it waits for no calendar.
frozen if {
	not rolls_back
	not input.workload.namespace in freeze.except
}

# Pods go back to the current revision, by a higher partition with the feature gate CloneSetPartitionRollback.
rolls_back if input.update < 0

# A user applied the old template again before all pods of a CloneSet had the new revision. During a restart, and for
# pods that a WorkloadSpread deletes, the revisions are equal too, so these are left out: the WorkloadSpread counts no
# updated pod. For other kinds no fact shows a rollout back by the old template. Their revisions can be equal in any
# rollout, for example while claims grow, after pods are adopted, or while the status names no current revision.
rolls_back if {
	input.workload.kind == "CloneSet"
	input.revisions.update == input.revisions.current
	input.counts.updated > 0
	not input.restart
}

workload := sprintf("%s %s/%s", [input.workload.kind, input.workload.namespace, input.workload.name])

day := (24 * 60) * 60

week := 7 * day

days := {"Sunday": 0, "Monday": 1, "Tuesday": 2, "Wednesday": 3, "Thursday": 4, "Friday": 5, "Saturday": 6}

today := time.weekday([input.now, freeze.timezone])

# Seconds of the day that the clock on the wall shows.
clock := ((hour * 3600) + (minute * 60)) + seconds if {
	[hour, minute, seconds] := time.clock([input.now, freeze.timezone])
}

# Seconds of the week until a day and a time.
second(moment) := (days[moment.day] * day) + (time.parse_duration_ns(sprintf("%sh%sm", split(moment.at, ":"))) / 1000000000)

# METADATA
# title: When it ends
# description: |
#   A time of the day so many days from now, by the clock on the wall. Twice, since
#   the clocks may change between noon and that time.
# labels:
#   id: freeze-window.ends
ends(ahead, time_of_day) := at(date, at(date, noon, time_of_day), time_of_day) if {
	noon := time.add_date(time.parse_ns("2006-01-02 15:04", concat(" ", [time.format([input.now, freeze.timezone, "2006-01-02"]), "12:00"])), 0, 0, ahead)
	date := time.format([noon, "UTC", "2006-01-02"])
}

at(date, near, time_of_day) := time.parse_ns(
	"2006-01-02 15:04 -07:00",
	sprintf("%s %s %s", [date, time_of_day, time.format([near, freeze.timezone, "-07:00"])]),
)
