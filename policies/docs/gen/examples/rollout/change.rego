package override.rollout

import data.rollout

default change := {"action": "Reject", "reason": "NoFacts", "message": "The facts are not complete, so no pod is changed."}

# Nothing is recreated: what cannot be changed in place stays as it is.
change := {"action": "Reject", "reason": "NeverRecreate", "message": rollout.change.message} if {
	rollout.change.action == "Recreate"
} else := rollout.change
