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
# description: A pod with one container, whatever it declares, or whose containers all have the same priority, declares no order.
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
order := {"priorities": order_declared, "refuse": [], "native": order_native, "differs": order_kept} if {
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
	count(input.containers) > 1
	input.annotation != "Ordered"
	input.fault != ""
}

order_faults contains container.fault if {
	count(input.containers) > 1
	input.annotation != "Ordered"
	not input.places
	some container in input.containers
	container.fault != ""
}

default order_native := false

# METADATA
# title: Native sidecars
# description: |
#   The containers of all groups but the last become init containers that restart,
#   where that is the same order (CLP-03).
# labels:
#   id: launchpriority.order.native
order_native if {
	input.nativeSidecars
	count(order_differs) == 0
}

order_kept := [difference |
	input.nativeSidecars
	some difference in order_differs
]

order_last := min([priority | some priority in order_declared])

# The containers of all groups but the last.
order_early := [container |
	some container in input.containers
	order_declared[container.name] > order_last
]

# Owners that never change images of containers in place; a pod may also have none.
order_replacing := {"", "apps", "batch"}

# METADATA
# title: Bound to its place
# description: A container cannot become an init container. Go does not let it either.
# labels:
#   id: launchpriority.order.bound
order_differs contains {
	"rule": "launchpriority.order.bound",
	"reason": "ContainerBound",
	"message": concat("", ["Container ", container.name, " cannot be an init container: ", container.bound, "."]),
} if {
	some container in order_early
	container.bound != ""
}

# METADATA
# title: A readiness probe
# description: A barrier waits until it succeeds, and kubelets start the next container before.
# labels:
#   id: launchpriority.order.readiness
order_differs contains {
	"rule": "launchpriority.order.readiness",
	"reason": "ReadinessProbe",
	"message": concat("", ["Container ", container.name, " has a readiness probe, for which only a barrier waits."]),
} if {
	some container in order_early
	container.readiness
}

# METADATA
# title: A startup probe beside others
# description: |
#   Containers of a group start together with barriers, and one after the other
#   as init containers. A probe that asks another one of the group would wait indefinitely.
# labels:
#   id: launchpriority.order.startup
order_differs contains {
	"rule": "launchpriority.order.startup",
	"reason": "StartupProbe",
	"message": concat("", ["Container ", container.name, " has a startup probe, for which others of its group would wait."]),
} if {
	some container in order_early
	container.startup
	count([other | some other in order_early; order_declared[other.name] == order_declared[container.name]]) > 1
}

# METADATA
# title: Ports with names or of the host
# description: Services and schedulers of some releases look for these among the containers alone.
# labels:
#   id: launchpriority.order.ports
order_differs contains {
	"rule": "launchpriority.order.ports",
	"reason": "Ports",
	"message": concat("", ["Container ", container.name, " has a port with a name or of the host, which not all releases of Kubernetes find in init containers."]),
} if {
	some container in order_early
	container.ports
}

# METADATA
# title: A pod that ends
# description: Init containers that restart do so whatever the restart policy of the pod is.
# labels:
#   id: launchpriority.order.restarts
order_differs contains {
	"rule": "launchpriority.order.restarts",
	"reason": "RestartPolicy",
	"message": "Containers of this pod may end, and as init containers they would be started again.",
} if {
	input.restartPolicy != "Always"
}

# METADATA
# title: An owner that may update in place
# description: Only owners of known groups replace their pods for each change.
# labels:
#   id: launchpriority.order.owner
order_differs contains {
	"rule": "launchpriority.order.owner",
	"reason": "Owner",
	"message": concat("", ["The pod belongs to a ", input.owner.kind, ", which may look for its containers where it declared them."]),
} if {
	not input.owner.group in order_replacing
	input.owner.kind
}
