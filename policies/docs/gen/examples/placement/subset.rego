package override.placement

import data.placement

default subset := {"subset": "", "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so the pod is created as it is."}], "denials": []}

# Pods labelled best-effort go to the last subset.
subset := object.union(placement.subset, {"subset": input.subsets[count(input.subsets) - 1].name}) if {
	input.pod.labels.tier == "best-effort"
} else := placement.subset
