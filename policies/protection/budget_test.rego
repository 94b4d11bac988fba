package protection_test

import future.keywords.not

import data.protection

pod := {
	"request": {"operation": "DELETE", "user": {"name": "ann"}},
	"object": {"resource": "pods", "kind": "Pod", "namespace": "shop", "name": "web-1", "terminating": false},
	"pod": {"ready": true, "consistent": true, "noProtect": false},
	"budget": {
		"name": "web", "maxUnavailable": "20%", "ignored": false,
		"desired": 8, "current": 10, "allowed": 2, "total": 10, "records": 0,
	},
	"resizeIsUpdate": false,
}

asked(facts) := answer if {
	answer := protection.budget with input as object.union(pod, facts)
}

reasons_of(answer) := [why.reason | some why in answer.reasons]

# Allowed without a count, for a reason.
free(facts) := reason if {
	answer := asked(facts)
	[answer.allow, answer.record, answer.take] == [true, "", false]
	[why] := answer.reasons
	reason := why.reason
}

test_a_pod_within_the_budget_takes_one if {
	answer := asked({})
	[answer.allow, answer.record, answer.take] == [true, "disruptedPods", true]
	answer.reasons == [{"rule": "protection.budget.taken", "reason": "WithinBudget", "message": "PodUnavailableBudget shop/web allows 2 more pods to become unavailable, of which this is one."}]
}

test_a_budget_that_is_used_up_denies_with_its_numbers if {
	answer := asked({"budget": {"allowed": 0, "current": 8}})
	not answer.allow
	answer.reasons[0].message == "podunavailablebudget.policy.kruise.io \"web\" is forbidden: pub unavailable allowed is negative. PodUnavailableBudget shop/web (maxUnavailable 20%) wants 8 of 10 pods available and 8 are, so 0 more may become unavailable. Try again when more are: kubectl get pub web -n shop -w"
}

test_pods_that_were_let_go_a_moment_ago_are_mentioned if {
	answer := asked({"budget": {"allowed": 0, "current": 9, "records": 1}})
	contains(answer.reasons[0].message, "wants 8 of 10 pods available and 9 are (recorded as going: 1), so 0 more may become unavailable. ")
}

test_a_budget_that_never_allows_any_says_so if {
	answer := protection.budget with input as object.union(object.remove(pod, ["budget"]), {"budget": {"name": "web", "minAvailable": "3", "ignored": false, "desired": 3, "current": 3, "total": 3, "allowed": -1, "records": 0}})
	contains(answer.reasons[0].message, "(minAvailable 3) wants 3 of 3 pods available and 3 are, so 0 more may become unavailable. Waiting does not help")
}

test_too_many_records_deny if {
	reasons_of(asked({"budget": {"records": 2001}})) == ["TooManyRecords"]
	asked({"budget": {"records": 2000}}).take
	reasons_of(asked({"budget": {"records": 2001, "allowed": 0}})) == ["BudgetExceeded"]
}

test_each_clause_allows_though_the_budget_is_used_up if {
	free({"budget": {"allowed": 0}, "object": {"terminating": true}}) == "AlreadyTerminating"
	free({"budget": {"allowed": 0}, "pod": {"noProtect": true}}) == "NoProtect"
	free({"budget": {"allowed": 0}, "pod": {"ready": false}}) == "NotReady"
	free({"budget": {"allowed": 0}, "pod": {"consistent": false}}) == "NotConsistent"
	free({"budget": {"allowed": 0, "ignored": true}}) == "Ignored"
	free({"budget": {"allowed": 0, "desired": 0}}) == "NothingDesired"
	free({"budget": {"allowed": 0, "operations": ["EVICT"]}}) == "OperationNotProtected"
	answer := protection.budget with input as object.remove(pod, ["budget"])
	reasons_of(answer) == ["NoBudget"]
}

test_the_first_clause_that_applies_is_named if {
	free({"pod": {"noProtect": true, "ready": false, "consistent": false}}) == "NoProtect"
	free({"pod": {"ready": false, "consistent": false}, "budget": {"ignored": true}}) == "NotReady"
	free({"budget": {"ignored": true, "desired": 0, "recorded": "disruptedPods"}}) == "Ignored"
}

test_operations_are_protected_as_the_budget_says if {
	every operation in ["DELETE", "UPDATE", "EVICT"] {
		asked({"request": {"operation": operation}}).take
	}
	free({"request": {"operation": "RESIZE"}}) == "OperationNotProtected"
	asked({"request": {"operation": "RESIZE"}, "resizeIsUpdate": true}).take
	asked({"request": {"operation": "RESIZE"}, "budget": {"operations": ["RESIZE"]}}).take
	asked({"request": {"operation": "RESIZE"}, "budget": {"operations": ["UPDATE"]}, "resizeIsUpdate": true}).take
	free({"request": {"operation": "RESIZE"}, "budget": {"operations": ["DELETE"]}, "resizeIsUpdate": true}) == "OperationNotProtected"
	free({"request": {"operation": "UPDATE"}, "budget": {"operations": ["DELETE", "EVICT"]}}) == "OperationNotProtected"
}

test_each_operation_has_its_list if {
	lists := {operation: asked({"request": {"operation": operation}, "resizeIsUpdate": true}).record | some operation in ["DELETE", "EVICT", "UPDATE", "RESIZE"]}
	lists == {"DELETE": "disruptedPods", "EVICT": "disruptedPods", "UPDATE": "unavailablePods", "RESIZE": "unavailablePods"}
}

test_a_pod_that_is_recorded_is_recorded_anew_and_takes_none if {
	every case in [
		["DELETE", "disruptedPods", "disruptedPods"], ["DELETE", "unavailablePods", "disruptedPods"],
		["UPDATE", "unavailablePods", "unavailablePods"], ["UPDATE", "disruptedPods", "disruptedPods"],
	] {
		answer := asked({"request": {"operation": case[0]}, "budget": {"recorded": case[1], "allowed": 0}})
		[answer.allow, answer.record, answer.take, reasons_of(answer)] == [true, case[2], false, ["AlreadyRecorded"]]
	}
}

closed := [{"reason": "Closed", "message": "The shop is closed."}]

test_users_deny_whatever_the_budget_says if {
	every facts in [{}, {"pod": {"ready": false}}, {"pod": {"noProtect": true}}, {"budget": {"recorded": "disruptedPods"}}] {
		answer := asked(facts) with data.extend.protection.shop.deny as closed
		[answer.allow, reasons_of(answer)] == [false, ["Closed"]]
	}
	unbudgeted := protection.budget with input as object.remove(pod, ["budget"]) with data.extend.protection.shop.deny as closed
	reasons_of(unbudgeted) == ["Closed"]
	both := asked({"budget": {"allowed": 0}}) with data.extend.protection.shop.deny as closed
	reasons_of(both) == ["BudgetExceeded", "Closed"]
}

test_nobody_denies_what_is_on_its_way_out if {
	answer := asked({"object": {"terminating": true}}) with data.extend.protection.shop.deny as closed
	[answer.allow, reasons_of(answer)] == [true, ["AlreadyTerminating"]]
}

open := [{"reason": "Open", "message": "It is an emergency."}]

test_an_exemption_allows_and_records if {
	exceeded := asked({"budget": {"allowed": 0}}) with data.extend.protection.ops.exempt as open
	[exceeded.allow, exceeded.exempt, exceeded.record, exceeded.take, reasons_of(exceeded)] == [true, true, "disruptedPods", false, ["Open", "BudgetExceeded"]]
	crowded := asked({"budget": {"records": 2001}}) with data.extend.protection.ops.exempt as open
	[crowded.exempt, crowded.take, reasons_of(crowded)] == [true, true, ["Open", "TooManyRecords"]]
	denied := asked({}) with data.extend.protection.ops.exempt as open with data.extend.protection.shop.deny as closed
	[denied.exempt, denied.record, denied.take, reasons_of(denied)] == [true, "disruptedPods", true, ["Open", "Closed"]]
	idle := asked({"pod": {"ready": false}}) with data.extend.protection.ops.exempt as open with data.extend.protection.shop.deny as closed
	[idle.exempt, idle.record, idle.take, reasons_of(idle)] == [true, "", false, ["Open", "Closed"]]
}

test_an_exemption_allows_where_no_policy_decided if {
	answer := protection.budget_exempt with input as {"request": {"operation": "DELETE"}, "object": {"kind": "Pod", "name": "web-0"}}
		with protection.budget_ruling as {"record": "disruptedPods", "take": true}
		with data.extend.protection.ops.exempt as open
	[answer.allow, answer.exempt, answer.record, answer.take, reasons_of(answer)] == [true, true, "disruptedPods", true, ["Open", "NoDecision"]]
}

test_an_exemption_that_is_not_needed_is_not_used if {
	answer := asked({}) with data.extend.protection.ops.exempt as open
	[object.get(answer, "exempt", false), reasons_of(answer)] == [false, ["WithinBudget"]]
}

test_a_glass_that_did_not_break_is_mentioned if {
	answer := asked({"budget": {"allowed": 0}, "object": {"annotations": {"policy.kruise.io/break-glass": "please"}}})
	reasons_of(answer) == ["BudgetExceeded", "BreakGlassNotAllowed"]
}

test_without_facts_the_pod_stays if {
	every facts in [
		{}, {"pod": {}}, object.remove(pod, ["pod"]), object.remove(pod, ["request"]), object.union(object.remove(pod, ["budget"]), {"budget": {}}),
		object.union(object.remove(pod, ["budget"]), {"budget": {"name": "web", "allowed": 1}}),
	] {
		answer := protection.budget with input as facts
		[answer.allow, reasons_of(answer)] == [false, ["FactsMissing"]]
	}
}
