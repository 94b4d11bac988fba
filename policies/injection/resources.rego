package injection

import future.keywords.not

# METADATA
# scope: document
# title: The resources of a container
# description: |
#   What resources a container of a SidecarSet gets whose resourcesPolicy computes
#   them from those of other containers (SS-08). What the expressions give is a
#   fact: no policy computes amounts from texts.
# entrypoint: true
# labels:
#   id: injection.resources.no-facts
default resources := {
	"limits": {},
	"requests": {},
	"refuse": [{
		"rule": "injection.resources.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of this container are not complete, so the pod is not created.",
	}],
}

# METADATA
# title: Computed
# description: |
#   What the expressions give. A limit that one of the other containers does not have is
#   not set.
# labels:
#   id: injection.resources.computed
resources := {
	"limits": resources_amounts(input.limits),
	"requests": resources_amounts(input.requests),
	"refuse": [],
} if {
	input.targets[0]
	count(resources_faults) == 0
}

# METADATA
# title: Nothing to compute from
# description: The regular expression matches no container of the pod.
# labels:
#   id: injection.resources.no-target
resources := resources_refused("no-target", "NoTargetContainers", sprintf("no containers match the regex pattern %q, from which the resources of container %s of SidecarSet %s are computed", [input.pattern, input.container, input.set])) if {
	input.targets == []
}

# METADATA
# title: A faulty expression
# description: An expression has no value, or one that no resource can have.
# labels:
#   id: injection.resources.faulty
resources := resources_refused("faulty", "FaultyExpression", sprintf("SidecarSet %s: the resourcesPolicy of container %s is faulty: %s", [input.set, input.container, concat("; ", resources_faults)])) if {
	input.targets[0]
	count(resources_faults) > 0
}

resources_amounts(computed) := {resource: amount.value |
	some resource, amount in computed
	not amount.unlimited
}

resources_faults := {sprintf("%s.%s %q: %s", [kind, resource, amount.expression, amount.fault]) |
	some kind in ["limits", "requests"]
	some resource, amount in input[kind]
	amount.fault
}

resources_refused(id, reason, message) := {
	"limits": {},
	"requests": {},
	"refuse": [{"rule": concat("", ["injection.resources.", id]), "reason": reason, "message": message}],
}
