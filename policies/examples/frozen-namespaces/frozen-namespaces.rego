# METADATA
# title: Frozen namespaces
# description: |
#   No pod is updated in a namespace with a label that freezes it, whoever owns the
#   workload. Pods that are being updated finish; scaling goes on.
package extend.rollout.frozen_namespaces

import future.keywords.not

# Edit this: the label of a frozen namespace. Its value says why.
key := "shop.example/freeze"

# METADATA
# title: The namespace of the workload is frozen
# labels:
#   id: frozen-namespaces.workload
hold contains {
	"rule": "frozen-namespaces.workload",
	"reason": "NamespaceFrozen",
	"message": sprintf("Namespace %s is frozen (label %s=%s), so %s %s/%s is not updated.", [input.workload.namespace, key, why, input.workload.kind, input.workload.namespace, input.workload.name]),
} if {
	why := input.workload.namespaceLabels[key]
}

# METADATA
# title: The namespace of a pod is frozen
# description: A SidecarSet is in no namespace, so the labels are those of each pod.
# labels:
#   id: frozen-namespaces.pod
hold contains {
	"rule": "frozen-namespaces.pod",
	"reason": "NamespaceFrozen",
	"message": sprintf("Namespace %s is frozen (label %s=%s), so its pods are not updated.", [pod.namespace, key, why]),
	"namespace": pod.namespace,
	"pod": pod.name,
} if {
	some pod in input.pods
	why := pod.namespaceLabels[key]
}
