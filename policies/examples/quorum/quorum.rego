# METADATA
# title: Quorum
# description: |
#   Workloads with the label shop.example/quorum=true keep a majority of their pods available
#   while they are updated, and the pod with the label shop.example/role=leader is updated last.
package extend.rollout.quorum

import future.keywords.not

votes if input.workload.labels["shop.example/quorum"] == "true"

majority := floor(input.workload.replicas / 2) + 1

# METADATA
# title: No majority would be left
# description: |
#   maxUnavailable lets so many pods be unavailable that the others are no majority. With one or
#   two pods a majority is all of them, so nothing could ever be updated: these are left alone.
# labels:
#   id: quorum.majority
hold contains {
	"rule": "quorum.majority",
	"reason": "QuorumAtRisk",
	"message": sprintf("%s %s/%s may have %d of its %d pods unavailable, and needs %d of them: set maxUnavailable to %d at most.", [input.workload.kind, input.workload.namespace, input.workload.name, input.maxUnavailable, input.workload.replicas, majority, most]),
} if {
	votes
	input.workload.replicas > 2
	most := input.workload.replicas - majority
	input.maxUnavailable > most
}

# METADATA
# title: The leader last
# description: The leader waits while any other pod is still to be moved.
# labels:
#   id: quorum.leader
hold contains {
	"rule": "quorum.leader",
	"reason": "LeaderLast",
	"message": sprintf("Pod %s leads (label shop.example/role=leader), so it is updated after the others.", [pod.name]),
	"pod": pod.name,
} if {
	votes
	some pod in input.pods
	leads(pod)
	pod.updated in followers
}

# Whether pods that do not lead are still to be moved, forwards (false) or back (true).
followers contains pod.updated if {
	some pod in input.pods
	not leads(pod)
}

leads(pod) if pod.labels["shop.example/role"] == "leader"
