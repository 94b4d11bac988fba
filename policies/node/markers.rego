package node

import future.keywords.not

# METADATA
# scope: document
# title: What the results of probes mean
# description: |
#   Which conditions, labels and annotations the results of the probes of a
#   PodProbeMarker give to a pod or take off it (PPM-04, PPM-05).
# entrypoint: true
# labels:
#   id: node.markers.no-facts
default markers := {
	"conditions": [],
	"labels": {},
	"annotations": {},
	"removeLabels": [],
	"removeAnnotations": [],
	"holds": [{
		"rule": "node.markers.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of these probes are not complete, so the pod keeps its conditions, labels and annotations.",
	}],
}

# METADATA
# title: As the PodProbeMarkers say
# description: |
#   Succeeded is True, Failed is False and Unknown is Unknown. The first probe of a
#   condition type has it. The pod gets the labels and annotations of the policies of its
#   results, of which the first has a key that several name, and loses those of all others.
# labels:
#   id: node.markers
markers := {
	"conditions": markers_conditions,
	"labels": labels,
	"annotations": annotations,
	"removeLabels": sort(markers_keys("labels") - object.keys(labels)),
	"removeAnnotations": sort(markers_keys("annotations") - object.keys(annotations)),
	"holds": [],
} if {
	is_string(input.pod.name)
	is_array(input.results)
	labels := markers_set("labels")
	annotations := markers_set("annotations")
}

markers_status := {"Succeeded": "True", "Failed": "False", "Unknown": "Unknown"}

# On a serverless node the conditions are where the results come from.
markers_conditions := [] if input.serverless

markers_conditions := [condition |
	some i, result in input.results
	result.conditionType
	not result.conditionType in {before.conditionType | some before in array.slice(input.results, 0, i)}
	condition := object.union(
		{"type": result.conditionType, "status": markers_status[result.state]},
		{key: result[key] | some key in ["message"]; result[key]},
	)
] if {
	not input.serverless
}

markers_set(field) := object.union_n(array.reverse([object.get(policy, field, {}) |
	some result in input.results
	some policy in result.policies
	policy.state == result.state
]))

markers_keys(field) := {key |
	some result in input.results
	some policy in result.policies
	some key, _ in policy[field]
}
