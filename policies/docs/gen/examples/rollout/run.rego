package override.rollout

import data.rollout

default run := {"action": "Wait", "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so the run waits."}]}

# What was due more than an hour ago is left out, in all schedules of the cluster.
run := {"action": "Skip", "holds": [{"reason": "TooLate", "message": "It was due more than an hour ago."}]} if {
	input.now - input.run.scheduled > 3600000000000
} else := rollout.run
