package override.launchpriority

import data.launchpriority

default order := {"priorities": {}, "refuse": [{"reason": "NoFacts", "message": "The facts are not complete, so the pod is not created."}]}

# A container named proxy starts before all others, which start as they declare.
order := {"priorities": object.union({container.name: 0 | some container in input.containers}, object.union(launchpriority.order.priorities, {"proxy": 1000})), "refuse": []} if {
	some container in input.containers
	container.name == "proxy"
} else := launchpriority.order
