# METADATA
# title: Launch priority
# description: |
#   In which order the containers of a pod start. Input and answer of the
#   entrypoint are the types of the same name in engine/decision/launchpriority.
package launchpriority

import future.keywords.not

# METADATA
# scope: document
# title: Which containers start before others
# description: |
#   The order that the pod declares, by its annotation or by the env of its
#   containers (CLP-01). The highest priority starts first.
# entrypoint: true
# labels:
#   id: launchpriority.order.no-facts
default order := {
	"priorities": {},
	"refuse": [{
		"rule": "launchpriority.order.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of this pod are not complete, so it is not created.",
	}],
}

# METADATA
# title: Together
# description: A pod with one container, or whose containers all have the same priority, declares no order.
# labels:
#   id: launchpriority.order.together
order := {"priorities": {}, "refuse": []} if {
	is_array(input.containers)
	count(order_faults) == 0
	count({priority | some priority in order_declared}) <= 1
}

# METADATA
# title: In order
# description: Containers start as they are declared to.
# labels:
#   id: launchpriority.order.declared
order := {"priorities": order_declared, "refuse": []} if {
	is_array(input.containers)
	count(order_faults) == 0
	count({priority | some priority in order_declared}) > 1
}

# METADATA
# title: A faulty declaration
# description: The annotation or an env declares an order that cannot be read.
# labels:
#   id: launchpriority.order.faulty
order := {
	"priorities": {},
	"refuse": [{"rule": "launchpriority.order.faulty", "reason": "FaultyOrder", "message": concat("; ", order_faults)}],
} if {
	is_array(input.containers)
	count(order_faults) > 0
}

# The first clause that applies declares the order.
order_declared := priorities if {
	priorities := order_of_spec
} else := priorities if {
	priorities := order_of_places
} else := order_of_env

# METADATA
# title: By the order of the spec
# description: The annotation is Ordered, so that each container starts after the one before it.
# labels:
#   id: launchpriority.order.spec
order_of_spec := {container.name: priority |
	some at, container in input.containers
	priority := 0 - at
} if {
	input.annotation == "Ordered"
}

# METADATA
# title: By the places of the annotation
# description: |
#   The annotation is a JSON object of places, of which the lowest starts first.
#   Containers without a place start after all others.
# labels:
#   id: launchpriority.order.places
order_of_places := {container.name: priority |
	some container in input.containers
	last := max([place | some place in input.places]) + 1
	priority := 0 - object.get(input.places, container.name, last)
} if {
	count(input.places) > 0
}

# METADATA
# title: By the env of the containers
# description: The env KRUISE_CONTAINER_PRIORITY, which is 0 where it is not set.
# labels:
#   id: launchpriority.order.env
order_of_env := {container.name: object.get(container, "priority", 0) | some container in input.containers}

order_faults contains input.fault if {
	input.annotation != "Ordered"
	input.fault != ""
}

order_faults contains container.fault if {
	input.annotation != "Ordered"
	not input.places
	some container in input.containers
	container.fault != ""
}
