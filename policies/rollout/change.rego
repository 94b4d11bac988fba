# METADATA
# title: Rollout
# description: |
#   How pods are moved from one revision to another, in which order and how
#   many at a time. Input and answer of each entrypoint are the types of the
#   same name in engine/decision.
package rollout

import future.keywords.not

# METADATA
# scope: document
# title: The way to change a pod
# description: |
#   Whether a pod is brought from one template to another in place, is recreated
#   or must be left alone (A-01 and CS-12). Without a policy that is
#   known the pod is left alone.
# entrypoint: true
# labels:
#   id: rollout.change.unknown-policy
default change := {
	"action": "Reject",
	"reason": "UnknownPolicy",
	"message": "The update strategy names no pod update policy that is known, so no pod is changed.",
}

# METADATA
# title: A claim that cannot become what its template asks for
# description: |
#   Claims follow their templates by growing, which only the size of a claim can and only in a
#   storage class that allows it (ASTS-14). The pod keeps its claims and its revision until the
#   template or the strategy changes: a claim has data, and is never replaced.
# labels:
#   id: rollout.change.claims-differ
change := {
	"action": "Wait",
	"reason": "VolumeClaimsDiffer",
	"message": concat(" ", [
		change_claim_message(change_stuck_claims[0]),
		"Give the template what the claims have, or volumeClaimUpdateStrategy OnDelete, which leaves claims as they are.",
	]),
} if {
	change_stuck_claims[0]
}

change_stuck_claims := [claim |
	some claim in input.claims
	claim.obstacle
]

change_claim_message(claim) := sprintf("Claim %s has %s %s and template %s asks for %s; Kubernetes never changes that on a claim.", [claim.claim, change_claim_words[claim.what], claim.from, claim.template, claim.to]) if {
	claim.obstacle == "Immutable"
}

change_claim_message(claim) := sprintf("Claim %s cannot grow from %s to %s, as template %s asks: storage class %s does not allow volumes to grow.", [claim.claim, claim.from, claim.to, claim.template, claim.class]) if {
	claim.obstacle == "NotExpandable"
}

change_claim_message(claim) := sprintf("Claim %s cannot grow from %s to %s, as template %s asks: its storage class %q is not there to say whether volumes may grow.", [claim.claim, claim.from, claim.to, claim.template, claim.class]) if {
	claim.obstacle == "ClassNotFound"
}

change_claim_words := {"storageClass": "storage class", "accessModes": "access modes", "size": "size"}

# METADATA
# title: Recreate was asked for
# description: The strategy wants pods recreated even where a change in place is possible.
# labels:
#   id: rollout.change.recreate
change := {
	"action": "Recreate",
	"reason": "PolicyReCreate",
	"message": "The update strategy is ReCreate, so each pod is recreated.",
} if {
	not change_stuck_claims[0]
	input.policy == "ReCreate"
}

# METADATA
# title: Nothing to change
# description: The templates are equal. The pod only gets the new revision label.
# labels:
#   id: rollout.change.nothing
change := {
	"action": "InPlace",
	"reason": "NothingChanged",
	"message": sprintf("The templates of revisions %s and %s are equal, so only the revision label changes.", [input.from, input.to]),
} if {
	not change_stuck_claims[0]
	input.policy in {"InPlaceIfPossible", "InPlaceOnly"}
	count(change_obstacle) == 0
	not input.changes[0]
}

# METADATA
# title: In place
# description: Every difference of the templates can be made on the running pod.
# labels:
#   id: rollout.change.in-place
change := object.union(change_gate, {
	"action": "InPlace",
	"reason": "InPlacePossible",
	"message": sprintf("Each difference of revisions %s and %s can be made in place.", [input.from, input.to]),
}) if {
	not change_stuck_claims[0]
	input.policy in {"InPlaceIfPossible", "InPlaceOnly"}
	count(change_obstacle) == 0
	input.changes[0]
}

# METADATA
# title: Recreate because in place is not possible
# description: The first obstacle gives the reason.
# labels:
#   id: rollout.change.fall-back
change := object.union(change_first_obstacle, {"action": "Recreate"}) if {
	not change_stuck_claims[0]
	input.policy == "InPlaceIfPossible"
}

# METADATA
# title: Reject because in place is not possible
# description: |
#   InPlaceOnly never recreates. The words that users know from events, "find Pod
#   ... update strategy is InPlaceOnly but can not update in-place", go ahead of the
#   message where the pod is known.
# labels:
#   id: rollout.change.in-place-only
change := object.union(change_first_obstacle, {"action": "Reject"}) if {
	not change_stuck_claims[0]
	input.policy == "InPlaceOnly"
}

change_first_obstacle := change_obstacle[min(object.keys(change_obstacle))]

# METADATA
# title: A pod that would stay in its services
# description: |
#   A DaemonSet changes only pods in place that have the readiness gate, which they get if
#   they are created while it updates in place (ADS-11).
# labels:
#   id: rollout.change.ungated
change_obstacle[0] := {
	"reason": "NoReadinessGate",
	"message": "The pod does not have the readiness gate InPlaceUpdateReady, which only pods have that were created while the update was to be in place.",
} if {
	input.ungated
	input.workload.kind == "DaemonSet"
}

# METADATA
# title: A template is gone
# description: History was truncated, or the pod names a revision that never was.
# labels:
#   id: rollout.change.unknown-revision
change_obstacle[1] := {
	"reason": "RevisionUnknown",
	"message": sprintf("The template of revision %q or %q is not in history, so the two cannot be compared.", [input.from, input.to]),
} if {
	not input.known
}

# METADATA
# title: Other volume claims
# description: Only under its gate, and never for a CloneSet that is InPlaceOnly.
# labels:
#   id: rollout.change.claims
change_obstacle[2] := {
	"reason": "VolumeClaimsChanged",
	"message": sprintf("Revisions %s and %s have different volume claim templates.", [input.from, input.to]),
} if {
	input.gates.recreateOnNewClaims
	input.claimsChanged
	not change_ignores_claims
}

change_ignores_claims if {
	input.workload.kind == "CloneSet"
	input.policy == "InPlaceOnly"
}

# METADATA
# title: A difference that a running pod cannot take
# description: Anything but an image, a label or an annotation, and under its gate cpu and memory.
# labels:
#   id: rollout.change.difference
change_obstacle[3] := {
	"reason": "NotInPlace",
	"message": sprintf("Only images, labels and annotations can be changed in place, but found %s %s.", [first.op, first.path]),
} if {
	first := change_blocked[0]
	first.class != "resources"
}

# METADATA
# title: Resources without the gate
# description: cpu and memory are changed in place only where the gate allows it.
# labels:
#   id: rollout.change.resources-gate
change_obstacle[3] := {
	"reason": "VerticalScalingDisabled",
	"message": sprintf("The feature gate InPlaceWorkloadVerticalScaling is off, but found %s %s.", [first.op, first.path]),
} if {
	first := change_blocked[0]
	first.class == "resources"
}

# METADATA
# title: Another QoS class
# description: Kubernetes never changes the QoS class of a running pod.
# labels:
#   id: rollout.change.qos
change_obstacle[4] := {
	"reason": "QoSClassChanged",
	"message": sprintf("The resources of revision %s would give the pod another QoS class.", [input.to]),
} if {
	input.qosChanged
	some difference in input.changes
	difference.class == "resources"
}

# METADATA
# title: No node agent to restart the containers
# description: |
#   An env that reads a changed label or annotation is read again only when its
#   container restarts. Without a node agent it would not, and the pod would
#   never be complete.
# labels:
#   id: rollout.change.env
change_obstacle[5] := {
	"reason": "NodeAgentNeeded",
	"message": sprintf("Only a node agent can restart %s, whose env reads labels or annotations that change, and there is none.", [concat(", ", input.envRefresh)]),
} if {
	input.gates.envFromMetadata
	input.envRefresh[0]
	not input.gates.nodeAgent
}

# METADATA
# title: No readiness gate to restart behind
# description: |
#   The node agent restarts a container for its env only while the pod is out of its
#   services, which takes the readiness gate InPlaceUpdateReady (PL-06).
# labels:
#   id: rollout.change.env-ungated
change_obstacle[6] := {
	"reason": "NoReadinessGate",
	"message": sprintf("The node agent restarts %s, whose env reads labels or annotations that change, only in a pod that has the readiness gate InPlaceUpdateReady.", [concat(", ", input.envRefresh)]),
} if {
	input.gates.envFromMetadata
	input.envRefresh[0]
	input.ungated
}

# METADATA
# title: A restart was asked for
# description: |
#   `rollout restart` writes the time into the annotation kubectl.kubernetes.io/restartedAt of the
#   template. Written into a running pod, it would restart nothing. InPlaceOnly never recreates, so
#   there it is an annotation like any other.
# labels:
#   id: rollout.change.restart
change_obstacle[7] := {
	"reason": "RestartRequested",
	"message": sprintf("The annotation kubectl.kubernetes.io/restartedAt of revision %s asks for new pods.", [input.to]),
} if {
	input.restartRequested
	input.policy == "InPlaceIfPossible"
}

# METADATA
# title: Pods that no Service selects
# description: |
#   A pod is made not ready before its containers restart, so that it leaves its Services first
#   (A-04). Where the setting readinessGate is WhereServed, a pod that no Service selects is not:
#   that saves two writes and the grace period. A restart of the node agent needs the gate (PL-06).
#   Packages that disagree, or say anything else, keep the gate.
# labels:
#   id: rollout.change.keep-ready
change_gate := {"keepReady": true} if {
	{setting | setting := data.extend.rollout[_].settings.readinessGate} == {"WhereServed"}
	input.unserved
	not input.envRefresh[0]
} else := {}

change_blocked := [difference |
	some difference in input.changes
	not difference.class in change_possible
]

change_possible := {"image", "metadata"} | {class |
	some class in ["resources"]
	input.gates.verticalScaling
}
