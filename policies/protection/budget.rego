# METADATA
# title: Protection
# description: |
#   What may not be deleted, evicted, updated or resized now. Input and answer of
#   each entrypoint are the types of the same name in engine/decision.
package protection

import future.keywords.not

# METADATA
# scope: document
# title: Whether a pod may become unavailable
# description: |
#   The clauses of PodUnavailableBudget in their order (PUB-03), the
#   denials of users whatever a budget says, and who is exempt from both. The
#   numbers are facts; a clamp in Go sees to it that no policy goes beyond them.
# entrypoint: true
# labels:
#   id: protection.budget.no-facts
default budget := {
	"allow": false,
	"reasons": [{
		"rule": "protection.budget.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of this pod or of its budget are not complete, so the pod stays.",
	}],
}

# METADATA
# title: Allowed
# description: The budget has nothing against it, or there is none, and no user denies it.
# labels:
#   id: protection.budget.allow
budget := {
	"allow": true,
	"record": ruling.record,
	"take": ruling.take,
	"reasons": [ruling.because],
} if {
	budget_passes
	ruling := budget_ruling
}

# METADATA
# title: Denied, unless the request is exempt
# description: The budget allows no more, or users deny it. All of them are named.
# labels:
#   id: protection.budget.deny
budget := budget_refused if not budget_passes

budget_refused := {
	"allow": false,
	"reasons": array.concat(budget_refusals, user_hints),
} if {
	count(budget_refusals) > 0
	count(user_exempt) == 0
}

# METADATA
# title: Exempt
# description: It would be denied but for an exemption. What the pod takes from its budget is recorded all the same.
# labels:
#   id: protection.budget.exempt
budget_refused := {
	"allow": true,
	"exempt": true,
	"record": budget_ruling.record,
	"take": budget_ruling.take,
	"reasons": array.concat(user_exempts, budget_refusals),
} if {
	count(budget_refusals) > 0
	count(user_exempt) > 0
}

# METADATA
# title: Exempt where no policy decided
# description: |
#   The engine asks for this one, with the policies of the platform alone, where a rule failed or was late:
#   an exemption holds whatever has become of the rules that deny.
# labels:
#   id: protection.budget.exempt-undecided
budget_exempt := {
	"allow": true,
	"exempt": true,
	"record": budget_ruling.record,
	"take": budget_ruling.take,
	"reasons": array.concat(user_exempts, [user_undecided]),
} if {
	count(user_exempt) > 0
}

budget_passes if {
	budget_ruling.allow
	not user_denies_it
}

budget_refusals := array.concat(
	[budget_ruling.because | not budget_ruling.allow],
	[deny | some deny in user_deny],
)

# The first clause that applies rules. Those that have nothing to count are only
# looked at when one of them applies: there are many, and pods are waited for.
budget_ruling := ruling if {
	budget_counts
	ruling := budget_taken
} else := ruling if {
	budget_counts
	ruling := budget_exceeded
} else := ruling if {
	budget_counts
	ruling := budget_too_many_records
} else := ruling if {
	not budget_counts
	ruling := budget_free
}

budget_counts if {
	input.object.terminating == false
	input.pod.ready
	input.pod.consistent
	input.pod.noProtect == false
	input.budget.desired > 0
	input.budget.ignored == false
	not input.budget.recorded
	budget_protected
}

budget_free := ruling if {
	ruling := budget_terminating
} else := ruling if {
	ruling := budget_no_protect
} else := ruling if {
	ruling := budget_not_ready
} else := ruling if {
	ruling := budget_not_consistent
} else := ruling if {
	ruling := budget_none
} else := ruling if {
	ruling := budget_ignored
} else := ruling if {
	ruling := budget_nothing_desired
} else := ruling if {
	ruling := budget_other_operation
} else := ruling if {
	ruling := budget_recorded
}

# METADATA
# title: On its way out
# description: The API server has accepted an earlier request to delete the pod.
# labels:
#   id: protection.budget.terminating
budget_terminating := budget_because("terminating", "AlreadyTerminating", "The pod is on its way out already.") if {
	input.object.terminating
}

# METADATA
# title: Not to be protected
# description: The annotation pub.kruise.io/no-protect takes the pod out of its budget.
# labels:
#   id: protection.budget.no-protect
budget_no_protect := budget_because("no-protect", "NoProtect", "The pod has the annotation pub.kruise.io/no-protect, so no budget protects it.") if {
	input.pod.noProtect
}

# METADATA
# title: Not ready
# description: A pod that is not ready serves no requests, so its loss disrupts nothing.
# labels:
#   id: protection.budget.not-ready
budget_not_ready := budget_because("not-ready", "NotReady", "The pod is not running and ready, so its loss disrupts nothing.") if {
	input.pod.ready == false
}

# METADATA
# title: Not consistent
# description: Its containers are not those of its spec yet, so it does not count as available (PUB-05).
# labels:
#   id: protection.budget.not-consistent
budget_not_consistent := budget_because("not-consistent", "NotConsistent", "The containers of the pod are not those of its spec, so it does not count as available.") if {
	input.pod.consistent == false
}

# METADATA
# title: No budget
# description: The pod names none, or one that is gone.
# labels:
#   id: protection.budget.no-budget
budget_none := budget_because("no-budget", "NoBudget", "No PodUnavailableBudget protects the pod.") if {
	not input.budget
	input.pod.ready # or nothing is known of the pod
}

# METADATA
# title: Ignored
# description: The budget's ignoredPodSelector selects the pod.
# labels:
#   id: protection.budget.ignored
budget_ignored := budget_because("ignored", "Ignored", "The budget's ignoredPodSelector selects the pod.") if {
	input.budget.ignored
}

# METADATA
# title: Nothing has to be available
# description: The budget asks for no pods.
# labels:
#   id: protection.budget.nothing-desired
budget_nothing_desired := budget_because("nothing-desired", "NothingDesired", "The budget asks for no pods to be available.") if {
	input.budget.desired == 0
}

# METADATA
# title: Another operation
# description: |
#   A budget that names no operations protects from DELETE, UPDATE and EVICT. One
#   that protects from UPDATE protects from RESIZE where that restarts containers.
# labels:
#   id: protection.budget.operation
budget_other_operation := budget_because("operation", "OperationNotProtected", "The budget does not protect from this operation.") if {
	is_string(input.request.operation)
	not budget_protected
}

budget_protected if {
	not input.budget.operations[0]
	input.request.operation in {"DELETE", "UPDATE", "EVICT"}
}

budget_protected if input.request.operation in input.budget.operations

budget_protected if {
	input.request.operation == "RESIZE"
	input.resizeIsUpdate
	budget_protects_from_updates
}

budget_protects_from_updates if "UPDATE" in input.budget.operations

budget_protects_from_updates if not input.budget.operations[0]

# METADATA
# title: Recorded already
# description: The pod has been taken from the budget, and is not taken twice. Its record is written anew, or it might expire under way.
# labels:
#   id: protection.budget.recorded
budget_recorded := {
	"allow": true,
	"record": budget_list,
	"take": false,
	"because": {
		"rule": "protection.budget.recorded",
		"reason": "AlreadyRecorded",
		"message": "The budget has counted the pod as unavailable already.",
	},
} if {
	input.budget.recorded in {"disruptedPods", "unavailablePods"}
}

# METADATA
# title: The budget is used up
# description: As many pods are unavailable as may be.
# labels:
#   id: protection.budget.exceeded
budget_exceeded := {
	"allow": false,
	"record": budget_list,
	"take": false,
	"because": {
		"rule": "protection.budget.exceeded",
		"reason": "BudgetExceeded",
		"message": sprintf(
			"podunavailablebudget.policy.kruise.io %q is forbidden: pub unavailable allowed is negative. PodUnavailableBudget %s/%s (%s) wants %d of %d pods available and %d are%s, so %d more may become unavailable. %s",
			[
				input.budget.name, input.object.namespace, input.budget.name, budget_bound,
				input.budget.desired, input.budget.total, input.budget.current, budget_going, max([0, input.budget.allowed]), budget_way_out,
			],
		),
	},
} if {
	input.budget.allowed <= 0
}

# METADATA
# title: Too many records
# description: The lists of the budget's status are bounded.
# labels:
#   id: protection.budget.too-many-records
budget_too_many_records := {
	"allow": false,
	"record": budget_list,
	"take": true,
	"because": {
		"rule": "protection.budget.too-many-records",
		"reason": "TooManyRecords",
		"message": sprintf(
			"podunavailablebudget.policy.kruise.io %q is forbidden: too many pods are recorded as disrupted or unavailable. PodUnavailableBudget %s/%s has %d of them, and notes no more than 2000 at a time. Try again in 20 seconds, when records expire: kubectl get pub %s -n %s -o yaml",
			[input.budget.name, input.object.namespace, input.budget.name, input.budget.records, input.budget.name, input.object.namespace],
		),
	},
} if {
	input.budget.records > 2000
}

# METADATA
# title: Taken from the budget
# description: One more pod may become unavailable, and this is the one.
# labels:
#   id: protection.budget.taken
budget_taken := {
	"allow": true,
	"record": object.get({"UPDATE": "unavailablePods", "RESIZE": "unavailablePods"}, input.request.operation, "disruptedPods"),
	"take": true,
	"because": {
		"rule": "protection.budget.taken",
		"reason": "WithinBudget",
		"message": sprintf("PodUnavailableBudget %s/%s allows %d more pods to become unavailable, of which this is one.", [input.object.namespace, input.budget.name, input.budget.allowed]),
	},
} if {
	input.budget.allowed > 0
	input.budget.records <= 2000
}

# Clauses by which the budget has nothing to count.
budget_because(clause, reason, message) := {
	"allow": true,
	"record": "",
	"take": false,
	"because": {"rule": concat(".", ["protection.budget", clause]), "reason": reason, "message": message},
}

# What is deleted stays on its list, which remembers it for longer.
budget_list := "unavailablePods" if {
	input.request.operation in {"UPDATE", "RESIZE"}
	not input.budget.recorded == "disruptedPods"
} else := "disruptedPods" if {
	is_string(input.request.operation) # or nothing is known of the request
}

budget_bound := concat(" ", ["maxUnavailable", input.budget.maxUnavailable]) if {
	input.budget.maxUnavailable
} else := concat(" ", ["minAvailable", object.get(input.budget, "minAvailable", "")])

# Those that were let go a moment ago may be counted as available still.
budget_going := sprintf(" (recorded as going: %d)", [input.budget.records]) if {
	input.budget.records > 0
} else := ""

budget_way_out := sprintf("Waiting does not help, since all pods have to be available: scale the workload up or change the budget. kubectl get pub %s -n %s", [input.budget.name, input.object.namespace]) if {
	input.budget.desired >= input.budget.total
} else := sprintf("Try again when more are: kubectl get pub %s -n %s -w", [input.budget.name, input.object.namespace])
