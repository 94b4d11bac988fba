# METADATA
# title: No debug in gold
# description: |
#   Pods that are labelled tier: gold get no ephemeral container of an EphemeralJob without
#   a ticket, which its annotation names.
package extend.placement.no_debug_in_gold

import future.keywords.not

# METADATA
# title: Gold pods need a ticket
# labels:
#   id: no-debug-in-gold
deny contains {
	"rule": "no-debug-in-gold",
	"reason": "TicketMissing",
	"message": sprintf("Pod %s is gold: its EphemeralJob needs the annotation ticket.", [pod.name]),
	"target": pod.name,
} if {
	not ticket
	some pod in input.pods
	pod.labels.tier == "gold"
}

# METADATA
# title: No privileged container
# description: A privileged container is denied in each pod, with a ticket or without.
# labels:
#   id: no-debug-in-gold.privileged
deny contains {
	"rule": "no-debug-in-gold.privileged",
	"reason": "Privileged",
	"message": sprintf("Container %s is privileged.", [container.name]),
} if {
	some container in input.containers
	container.privileged == true
}

ticket if regex.match(`^[A-Z]+-[0-9]+$`, input.job.annotations.ticket)
