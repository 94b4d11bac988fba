package override.placement

import data.placement

default persistent := {"nodeSelector": {}, "preferred": [], "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so the pod asks for no topology."}], "denials": []}

# In the playground pods prefer where they were, and do not insist.
persistent := object.union(placement.persistent, {
	"nodeSelector": {},
	"preferred": [{"weight": 100, "labels": placement.persistent.nodeSelector} | count(placement.persistent.nodeSelector) > 0],
}) if {
	input.pod.namespace == "playground"
} else := placement.persistent
