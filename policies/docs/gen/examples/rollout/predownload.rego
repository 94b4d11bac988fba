package override.rollout

import data.rollout

default predownload := {"action": "Wait", "reason": "NoFacts", "message": "The facts are not complete, so no images are pulled ahead."}

# Images are pulled ahead of updates of three pods or fewer, too.
predownload := {"action": "Pull", "reason": "Few", "message": "The images are large."} if {
	rollout.predownload.reason == "FewReplicas"
} else := rollout.predownload
