package protection

import future.keywords.not

# METADATA
# scope: document
# title: Whether an object may be deleted
# description: |
#   What the label policy.kruise.io/delete-protection protects from
#   (DP-01), the denials of users whatever the label says, and who is exempt from
#   both. Which children count is a fact of the kind, so a new kind needs no rule.
# entrypoint: true
# labels:
#   id: protection.deletion.no-facts
default deletion := {
	"allow": false,
	"reasons": [{
		"rule": "protection.deletion.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of this object are not complete, so it stays.",
	}],
}

# METADATA
# title: Allowed
# description: The label has nothing against it, and no user denies it.
# labels:
#   id: protection.deletion.allow
deletion := {"allow": true, "reasons": [deletion_free]} if {
	deletion_passes
}

# METADATA
# title: Denied, unless the request is exempt
# description: The label protects the object, or users deny it. All of them are named.
# labels:
#   id: protection.deletion.deny
deletion := deletion_refused if not deletion_passes

deletion_refused := {"allow": false, "reasons": array.concat(deletion_refusals, user_hints)} if {
	count(deletion_refusals) > 0
	count(user_exempt) == 0
}

# METADATA
# title: Exempt
# description: It would be denied but for an exemption.
# labels:
#   id: protection.deletion.exempt
deletion_refused := {"allow": true, "exempt": true, "reasons": array.concat(user_exempts, deletion_refusals)} if {
	count(deletion_refusals) > 0
	count(user_exempt) > 0
}

# METADATA
# title: Exempt where no policy decided
# description: As with budgets.
# labels:
#   id: protection.deletion.exempt-undecided
deletion_exempt := {"allow": true, "exempt": true, "reasons": array.concat(user_exempts, [user_undecided])} if {
	count(user_exempt) > 0
}

deletion_passes if {
	deletion_free
	not user_denies_it
}

deletion_refusals := array.concat(
	[deletion_protected | not deletion_free],
	[deny | some deny in user_deny],
)

# The first clause that applies lets the object go.
deletion_free := because if {
	because := deletion_terminating
} else := because if {
	because := deletion_other_operation
} else := because if {
	because := deletion_other_kind
} else := because if {
	because := deletion_gate_off
} else := because if {
	because := deletion_not_labelled
} else := because if {
	because := deletion_nothing_along
} else := because if {
	because := deletion_no_children
}

# The first clause that applies keeps it.
deletion_protected := because if {
	because := deletion_always
} else := because if {
	because := deletion_gate_missing
} else := because if {
	because := deletion_replicas
} else := because if {
	because := deletion_pods
} else := because if {
	because := deletion_claims
} else := because if {
	because := deletion_custom_resources
} else := because if {
	because := deletion_uncounted
}

deletion_label := input.object.labels["policy.kruise.io/delete-protection"] if {
	input.object.labels["policy.kruise.io/delete-protection"]
} else := "" if {
	is_string(input.object.name)
}

# METADATA
# title: On its way out
# description: The API server has accepted an earlier request to delete the object.
# labels:
#   id: protection.deletion.terminating
deletion_terminating := deletion_because("terminating", "AlreadyTerminating", "The object is on its way out already.") if {
	input.object.terminating
}

# METADATA
# title: Not a deletion
# description: The label protects from nothing else. Only users' rules are about it.
# labels:
#   id: protection.deletion.operation
deletion_other_operation := deletion_because("operation", "NotADeletion", "The label policy.kruise.io/delete-protection is about deletions only.") if {
	is_string(input.request.operation)
	input.request.operation != "DELETE"
}

# METADATA
# title: Not a protected kind
# description: The label means nothing on objects of this kind. Only users' rules are about it.
# labels:
#   id: protection.deletion.kind
deletion_other_kind := deletion_because("kind", "KindNotProtected", "The label policy.kruise.io/delete-protection does not protect objects of this kind.") if {
	not input.kind
	is_string(deletion_label) # or nothing is known of the object
}

# METADATA
# title: The gate is off
# description: Without the feature gate ResourcesDeletionProtection the label protects nothing.
# labels:
#   id: protection.deletion.gate-off
deletion_gate_off := deletion_because("gate-off", "DeletionProtectionDisabled", "The feature gate ResourcesDeletionProtection is off.") if {
	input.gates.deletion == false
}

# METADATA
# title: Not labelled
# description: The stored object has no label policy.kruise.io/delete-protection, or one with a value that means nothing.
# labels:
#   id: protection.deletion.not-labelled
deletion_not_labelled := deletion_because("not-labelled", "NotLabelled", "The object has no label policy.kruise.io/delete-protection that protects it.") if {
	is_string(deletion_label) # or nothing is known of the object
	not deletion_label in {"Always", "Cascading"}
}

# METADATA
# title: Nothing goes along
# description: Deleting an object of this kind takes nothing along that the value Cascading would protect.
# labels:
#   id: protection.deletion.nothing-along
deletion_nothing_along := deletion_because("nothing-along", "NothingGoesAlong", "Objects of this kind take nothing along that the value Cascading protects.") if {
	deletion_label == "Cascading"
	object.get(input.kind, "cascading", "") == ""
}

# METADATA
# title: No children
# description: Everything that a deletion would take along was counted, and there is none of it.
# labels:
#   id: protection.deletion.no-children
deletion_no_children := deletion_because("no-children", "NothingGoesAlong", "Nothing goes along with the object.") if {
	deletion_label == "Cascading"
	not input.uncounted
	deletion_childless
}

# A spec that does not say how many replicas it wants is let go.
deletion_childless if {
	input.kind.cascading == "replicas"
	object.get(input, "replicas", 0) <= 0
}

deletion_childless if {
	input.kind.cascading == "namespace"
	input.pods == 0
	input.claims == 0
}

deletion_childless if {
	input.kind.cascading == "customresources"
	input.gates.crdCascading
	input.customResources == 0
}

# METADATA
# title: Always
# description: An object with this label is never deleted. To delete it is to take off the label first.
# labels:
#   id: protection.deletion.always
deletion_always := deletion_because("always", "DeletionProtected", concat(". ", [deletion_forbidden, deletion_unlabel])) if {
	deletion_label == "Always"
}

# METADATA
# title: Custom resources are not counted
# description: Without its feature gate the value Cascading refuses each deletion of a custom resource definition.
# labels:
#   id: protection.deletion.crd-gate
deletion_gate_missing := deletion_because(
	"crd-gate", "CascadingProtectionDisabled",
	sprintf("feature-gate DeletionProtectionForCRDCascadingGate is not enabled, so the custom resources of %s cannot be counted. Turn it on, or do without. %s", [input.object.name, deletion_unlabel]),
) if {
	input.kind.cascading == "customresources"
	not input.gates.crdCascading
}

# METADATA
# title: It has replicas
# description: Deleting the workload would take its pods along.
# labels:
#   id: protection.deletion.replicas
deletion_replicas := deletion_because(
	"replicas", "HasReplicas",
	sprintf("%s and replicas %d>0. Scale it to 0 first: kubectl scale %s %s%s --replicas=0. %s", [deletion_forbidden, input.replicas, deletion_resource, input.object.name, deletion_flag, deletion_unlabel]),
) if {
	input.kind.cascading == "replicas"
	input.replicas > 0
}

# METADATA
# title: It has pods
# description: Deleting the namespace would take its pods along.
# labels:
#   id: protection.deletion.pods
deletion_pods := deletion_because(
	"pods", "HasPods",
	sprintf("%s and active pods %d>0. Delete its workloads first, and see what is left: kubectl get pods -n %s. %s", [deletion_forbidden, input.pods, input.object.name, deletion_unlabel]),
) if {
	input.kind.cascading == "namespace"
	input.pods > 0
}

# METADATA
# title: It has volumes
# description: Deleting the namespace would take the data of its bound volume claims along.
# labels:
#   id: protection.deletion.claims
deletion_claims := deletion_because(
	"claims", "HasVolumeClaims",
	sprintf("%s and \"Bound\" status pvc %d>0. Delete the volume claims that are not needed first: kubectl get pvc -n %s. %s", [deletion_forbidden, input.claims, input.object.name, deletion_unlabel]),
) if {
	input.kind.cascading == "namespace"
	input.claims > 0
}

# METADATA
# title: It has custom resources
# description: Deleting the definition would delete all objects of its kind.
# labels:
#   id: protection.deletion.custom-resources
deletion_custom_resources := deletion_because(
	"custom-resources", "HasCustomResources",
	sprintf("%s and active CRs %d>0. Delete them first: kubectl get %s --all-namespaces. %s", [deletion_forbidden, input.customResources, input.object.name, deletion_unlabel]),
) if {
	input.kind.cascading == "customresources"
	input.customResources > 0
}

# METADATA
# title: Dependents not counted
# description: The manager could not count the objects that are deleted as well. There may be some.
# labels:
#   id: protection.deletion.uncounted
deletion_uncounted := deletion_because(
	"uncounted", "NotCounted",
	sprintf("%s for list %s error: %s. Try again. %s", [deletion_forbidden, deletion_children, input.uncounted, deletion_unlabel]),
) if {
	input.uncounted
}

deletion_children := "pods" if {
	input.kind.cascading == "namespace"
	not is_number(input.pods)
} else := "pvc" if {
	input.kind.cascading == "namespace"
} else := "CRs" if {
	input.kind.cascading == "customresources"
} else := input.kind.cascading

deletion_because(clause, reason, message) := {
	"rule": concat(".", ["protection.deletion", clause]),
	"reason": reason,
	"message": message,
}

deletion_forbidden := concat("", ["forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=", deletion_label])

deletion_unlabel := sprintf("To delete it all the same, remove the label first: kubectl label %s %s%s policy.kruise.io/delete-protection-", [deletion_resource, input.object.name, deletion_flag])

deletion_resource := concat(".", [part | some part in [input.object.resource, input.object.group]; part != ""])

deletion_flag := concat(" ", [" -n", input.object.namespace]) if {
	object.get(input.object, "namespace", "") != ""
} else := ""
