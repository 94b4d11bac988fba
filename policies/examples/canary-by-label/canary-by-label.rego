# METADATA
# title: Canary by label
# description: |
#   Of a workload that asks for it, only pods with the label shop.example/canary=true
#   are updated until its annotation says that the revision has passed. All others
#   are held, however many may be unavailable.
package extend.rollout.canary_by_label

import future.keywords.not

# METADATA
# title: Canaries first
# description: |
#   Asked for each pod, which is not told of the revision, so any annotation lets it
#   go; one that is about another revision holds the whole workload, see below.
# labels:
#   id: canary-by-label.others
hold contains {
	"rule": "canary-by-label.others",
	"reason": "CanariesFirst",
	"message": others_wait,
	"pod": pod.name,
} if {
	asks
	not passed
	some pod in input.pods
	not pod.updated # those are only moved back, which heals
	not pod.labels["shop.example/canary"] == "true"
}

# METADATA
# title: Another revision has passed
# description: Until the annotation is taken off, the policy cannot tell canaries from the rest.
# labels:
#   id: canary-by-label.stale
hold contains {
	"rule": "canary-by-label.stale",
	"reason": "CanaryOfAnotherRevision",
	"message": sprintf("%s says that the canaries of revision %s have passed, and this is %s. Take the annotation off: kubectl annotate %s %s -n %s shop.example/canary-passed-", [workload, passed, input.revisions.update, lower(input.workload.kind), input.workload.name, input.workload.namespace]),
} if {
	asks
	input.update > 0
	passed != input.revisions.update
}

asks if input.workload.annotations["shop.example/canary"] == "by-label"

passed := revision if {
	revision := input.workload.annotations["shop.example/canary-passed"]
	revision != ""
}

# Made once, not for each pod.
others_wait := sprintf("%s updates the pods with the label shop.example/canary=true first; the others wait until the annotation shop.example/canary-passed names the revision.", [workload])

workload := sprintf("%s %s/%s", [input.workload.kind, input.workload.namespace, input.workload.name])
