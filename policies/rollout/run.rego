package rollout

import future.keywords.not

# METADATA
# scope: document
# title: Whether a run of a schedule starts
# description: |
#   Whether a run of an AdvancedCronJob that is due starts now, waits, or is left out
#   (ACJ-05), and who holds it.
# entrypoint: true
# labels:
#   id: rollout.run.no-facts
default run := {
	"action": "Wait",
	"holds": [{
		"rule": "rollout.run.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of this run are not complete, so it waits.",
	}],
}

# METADATA
# title: When it is due
# description: |
#   A run that no rule holds starts. One hold that says Skip leaves it out, whatever others
#   say.
# labels:
#   id: rollout.run
run := {
	"action": run_action,
	"holds": [hold | some hold in run_holds],
} if {
	is_number(input.run.scheduled)
	is_array(input.run.active)
}

run_action := "Skip" if {
	some hold in run_holds
	hold.run == "Skip"
} else := "Wait" if {
	count(run_holds) > 0
} else := "Start"

run_holds := run_user_hold | run_forbidden

# METADATA
# title: Holds of users that are about runs
# description: |
#   Those that say so by `run`: Wait or Skip. A freeze of rollouts does not stop backups at
#   night unless its author wants that. One that is malformed holds runs too.
# labels:
#   id: rollout.run.hold
run_user_hold := {hold |
	some hold in user_hold
	run_concerned(hold)
}

run_concerned(hold) if hold.run in {"Wait", "Skip"}

run_concerned(hold) if hold.reason == "InvalidHold"

# METADATA
# title: An earlier run is active
# description: |
#   With concurrencyPolicy Forbid the run waits for the end of the earlier one, and starts
#   then unless it is too late or the next is due.
# labels:
#   id: rollout.run.forbid
run_forbidden contains {
	"rule": "rollout.run.forbid",
	"reason": "JobAlreadyActive",
	"message": "Not starting job because prior execution is running and concurrency policy is Forbid",
} if {
	input.run.concurrency == "Forbid"
	count(input.run.active) > 0
}
