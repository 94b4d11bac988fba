# METADATA
# title: Healthy nodes only
# description: |
#   A pod is left alone while its node is cordoned or under pressure: someone works on
#   the node, or a new image might be what it has no room for.
package extend.rollout.healthy_nodes_only

import future.keywords.not

# METADATA
# title: A cordoned node
# description: Someone works on it, or it is about to be drained.
# labels:
#   id: healthy-nodes-only.cordoned
hold contains {
	"rule": "healthy-nodes-only.cordoned",
	"reason": "NodeCordoned",
	"message": sprintf("Node %s is cordoned, so its pod is not updated until it is uncordoned.", [pod.node]),
	"pod": pod.name,
} if {
	some pod in input.pods
	not pod.updated # those are only moved back, which heals
	pod.onNode.unschedulable
}

# METADATA
# title: A node under pressure
# description: The kubelet says what the node is short of.
# labels:
#   id: healthy-nodes-only.pressure
hold contains {
	"rule": "healthy-nodes-only.pressure",
	"reason": "NodeUnderPressure",
	"message": sprintf("Node %s reports %s, so its pod is not updated until that is over.", [pod.node, condition]),
	"pod": pod.name,
} if {
	some pod in input.pods
	not pod.updated
	some condition in pod.onNode.conditions
	condition in {"MemoryPressure", "DiskPressure", "PIDPressure"}
}
