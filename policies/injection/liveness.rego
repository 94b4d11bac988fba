package injection

import future.keywords.not

# METADATA
# scope: document
# title: Whether the node agent runs liveness probes
# description: |
#   Which liveness probes of a pod the node agent runs in place of the kubelet (ELP-01), so
#   that a failure restarts the container as budgets and rules let it.
# entrypoint: true
# labels:
#   id: injection.liveness.no-facts
default liveness := {"take": []}

# METADATA
# title: Those that the annotation asks for
# description: All that the agent can run, in a pod that a controller owns and that asks for it.
# labels:
#   id: injection.liveness.asked
liveness := {"take": [container.name | some container in input.containers; container.supported]} if {
	input.asked
	input.pod.owner.kind
}
