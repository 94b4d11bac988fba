package rollout

import future.keywords.not

# METADATA
# scope: document
# title: Images ahead of an update
# description: |
#   Whether the images of a revision are pulled on the nodes of old pods before these are
#   updated in place, or recreated on the same node (A-12). The first rule that applies is
#   the answer.
# entrypoint: true
# labels:
#   id: rollout.predownload.no-facts
default predownload := {
	"action": "Wait",
	"reason": "FactsMissing",
	"message": "The facts of this rollout are not complete, so no images are pulled ahead.",
}

# METADATA
# title: Too few updated pods are ready
# description: The workload wants some pods to be updated and ready before images are pulled.
# labels:
#   id: rollout.predownload.wait
predownload := {
	"action": "Wait",
	"reason": "FewUpdatedReady",
	"message": sprintf("Images are pulled ahead once %d updated pods are ready; %d are.", [input.minUpdatedReady, input.updatedReady]),
} if {
	input.updatedReady < input.minUpdatedReady
} else := {
	"action": "Ignore",
	"reason": reason,
	"message": predownload_needless[reason],
} if {
	reason := min(object.keys(predownload_needless))
} else := {
	"action": "Pull",
	"reason": "UpdateInPlace",
	"message": sprintf("%d images of revision %s are pulled on the nodes of old pods.", [count(input.images), input.revisions.update]),
} if {
	is_array(input.images)
	input.change == "InPlace"
} else := {
	"action": "Pull",
	"reason": "SameNode",
	"message": sprintf("%d images of revision %s are pulled on the nodes of old pods.", [count(input.images), input.revisions.update]),
} if {
	is_array(input.images)
	predownload_recreated
}

# METADATA
# title: Not decided
# description: It is not known yet how pods are changed, so it is asked again.
# labels:
#   id: rollout.predownload.undecided
predownload_undecided if not input.change in {"InPlace", "Recreate", "Reject"}

# METADATA
# title: Recreated on the same node
# description: The pods of an Advanced DaemonSet come back to their nodes, where the images are.
# labels:
#   id: rollout.predownload.same-node
predownload_recreated if {
	input.change == "Recreate"
	input.sameNode == true
}

# METADATA
# title: Why pulling ahead is of no use
# description: |
#   Nothing rolls, pods are recreated on any node, there are few of them, all go at once, or
#   no image changes (A-12). Few pods of an Advanced DaemonSet are no reason: each is on a
#   node of its own.
# labels:
#   id: rollout.predownload.ignore
predownload_needless["NoRollingUpdate"] := "The update strategy is no rolling update, so no images are pulled ahead." if {
	input.strategy.type != "RollingUpdate"
}

predownload_needless["NotInPlace"] := sprintf("Pods are not updated in place to revision %s, so no images are pulled ahead.", [input.revisions.update]) if {
	not predownload_undecided
	not predownload_recreated
	input.change != "InPlace"
}

predownload_needless["FewReplicas"] := "There are three replicas or fewer, so no images are pulled ahead." if {
	input.workload.replicas <= 3
	not input.sameNode
}

predownload_needless["AllAtOnce"] := "All pods may be updated at once, so no images are pulled ahead." if {
	input.strategy.partition == 0
	input.maxUnavailable >= input.workload.replicas
}

predownload_needless["NoImage"] := "No image changes, so none are pulled ahead." if {
	count(input.images) == 0
}
