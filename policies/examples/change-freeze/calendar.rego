package extend.rollout.change_freeze

# METADATA
# title: When rollouts may go on
# description: |
#   Edit this. Days are named as in English, dates are written 2026-12-24, times
#   09:00 to 24:00, and all of them are meant in the time zone.
# labels:
#   id: change-freeze.calendar
calendar := {
	"timezone": "Europe/Berlin",
	"weekend": ["Saturday", "Sunday"],
	"hours": {"from": "09:00", "to": "17:00"},
	"dates": {
		"2026-12-24": "Christmas Eve",
		"2026-12-25": "Christmas Day",
		"2026-12-31": "New Year's Eve",
		"2027-01-01": "New Year's Day",
	},
	# Workloads of these namespaces are never frozen.
	"except": ["playground"],
}
