package protection_test

import future.keywords.not

import data.protection

wrong(rule, wish) := {problem.message | some problem in problems; problem.rule == rule; problem["package"] == "shop"} if {
	problems := protection.invalid with data.extend.protection.shop as {rule: wish}
}

wrong_guard(wish) := wrong("guard", [wish])

wrong_settings(settings) := wrong("settings", settings)

fine := {"group": "", "resource": "pods", "operations": ["DELETE"]}

test_what_is_sound_is_not_wrong if {
	every wish in [
		fine, object.union(fine, {"rule": "mine", "namespaces": ["shop"], "labels": {"tier": "gold"}}),
		object.union(fine, {"failurePolicy": "Fail"}), object.union(fine, {"failurePolicy": "Ignore"}),
		object.union(fine, {"operations": {"EVICT", "UPDATE"}, "namespaces": []}), {"group": "apps", "resource": "deployments", "operations": ["UPDATE"]},
	] {
		wrong_guard(wish) == set()
	}
	every settings in [
		{}, {"kinds": {}, "breakGlass": {}}, {"kinds": {"cronjobs.batch": {"cascading": ""}, "caches.shop.example": {"cascading": "replicas"}, "secrets": {}}},
		{"breakGlass": {"users": ["ann"], "groups": ["sre"]}}, {"breakGlass": {"users": []}},
	] {
		wrong_settings(settings) == set()
	}
	protection.invalid == set()
}

test_a_guard_that_is_wrong_says_where if {
	every case in [
		[7, "a guard is an object, but this is 7"],
		[object.union(fine, {"namespace": "shop"}), "a guard has no field namespace; there are failurePolicy, group, labels, namespaces, operations, resource, rule"],
		[object.remove(fine, ["group"]), "resource pods of group (none) is never sent: name one in the plural, without a wildcard, that is neither nodes nor leases"],
		[object.union(fine, {"resource": "*"}), "resource * of group  is never sent: name one in the plural, without a wildcard, that is neither nodes nor leases"],
		[object.union(fine, {"resource": "nodes"}), "resource nodes of group  is never sent: name one in the plural, without a wildcard, that is neither nodes nor leases"],
		[object.remove(fine, ["operations"]), "operations of pods are [], want a list of DELETE, EVICT, RESIZE, UPDATE"],
		[object.union(fine, {"operations": ["CREATE"]}), "operations of pods are [\"CREATE\"], want a list of DELETE, EVICT, RESIZE, UPDATE"],
		[{"group": "apps", "resource": "deployments", "operations": ["EVICT"]}, "operations of deployments are [\"EVICT\"], want a list of DELETE, UPDATE"],
		[object.union(fine, {"namespaces": "shop"}), "namespaces are shop, want a list of names"],
		[object.union(fine, {"namespaces": ["Shop"]}), "namespaces are [\"Shop\"], want a list of names"],
		[object.union(fine, {"labels": {"tier": 7}}), "labels are {\"tier\": 7}, want an object of labels and their values"],
		[object.union(fine, {"failurePolicy": "fail"}), "failurePolicy is fail, want Fail or Ignore"],
	] {
		case[1] in wrong_guard(case[0])
	}
}

test_a_guard_that_names_nothing_says_so if {
	problems := protection.invalid with data.extend.protection.shop.guard as []
	problems == {{"package": "shop", "rule": "guard", "message": "it names nothing when its input has the gates alone, which is all the input that a guard has"}}
}

test_settings_that_are_wrong_say_where if {
	every case in [
		[{"kind": {}}, "there is no setting kind; there are breakGlass and kinds"],
		[{"kinds": ["cronjobs.batch"]}, "kinds is [\"cronjobs.batch\"], want an object"],
		[{"breakGlass": "ann"}, "breakGlass is ann, want an object"],
		[{"kinds": {"CronJob": {}}}, "kinds has CronJob, want a resource in the plural and its group, such as cronjobs.batch"],
		[{"kinds": {"deployments.apps": {}}}, "kinds has deployments.apps, which is protected already and stays as it is"],
		[{"kinds": {"cronjobs.batch": true}}, "kinds has true for cronjobs.batch, want {\"cascading\": \"replicas\"}, or \"\" for nothing"],
		[{"kinds": {"cronjobs.batch": {"cascading": "namespace"}}}, "kinds has {\"cascading\": \"namespace\"} for cronjobs.batch, want {\"cascading\": \"replicas\"}, or \"\" for nothing"],
		[{"breakGlass": {"users": "ann"}}, "breakGlass has users: ann, want users or groups, and lists of their names"],
		[{"breakGlass": {"groups": [""]}}, "breakGlass has groups: [\"\"], want users or groups, and lists of their names"],
		[{"breakGlass": {"teams": ["sre"]}}, "breakGlass has teams: [\"sre\"], want users or groups, and lists of their names"],
	] {
		case[1] in wrong_settings(case[0])
	}
}
