package override.node

import data.node

default markers := {"conditions": [], "labels": {}, "annotations": {}, "removeLabels": [], "removeAnnotations": [], "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so the pod keeps what it has."}]}

# A result that is not known takes no label and no annotation away.
markers := object.union(node.markers, {"removeLabels": [], "removeAnnotations": []}) if {
	some result in input.results
	result.state == "Unknown"
} else := node.markers
