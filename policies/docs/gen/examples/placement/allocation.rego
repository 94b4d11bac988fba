package override.placement

import data.placement

default allocation := {"subsets": [], "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so all subsets stay as they are."}], "denials": []}

# In the playground the first subset gets all pods.
allocation := {
	"subsets": [{"name": subset.name, "replicas": replicas} |
		some i, subset in input.subsets
		replicas := {true: input.replicas, false: 0}[i == 0]
	],
	"holds": placement.allocation.holds,
	"denials": placement.allocation.denials,
} if {
	input.deployment.namespace == "playground"
	input.replicas >= 0
} else := placement.allocation
