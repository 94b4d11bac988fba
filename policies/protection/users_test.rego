package protection_test

import future.keywords.not

import data.protection

denied(wish) := deny if {
	deny := protection.user_deny with data.extend.protection.shop.deny as wish with input.object as {"name": "web-1"}
}

sound := {"reason": "Closed", "message": "The shop is closed."}

test_a_sound_denial_gets_the_name_of_its_package if {
	denied([sound]) == {{"rule": "extend.protection.shop", "reason": "Closed", "message": "The shop is closed."}}
}

test_a_denial_may_have_more_fields_and_no_others if {
	more := {"rule": "mine", "until": "2026-01-05T09:00:00Z"}
	denied([object.union(sound, object.union(more, {"severity": 9}))]) == {object.union(sound, more)}
}

test_no_denial_is_none if {
	every none in [[], {}, set()] {
		denied(none) == set()
	}
	protection.user_deny == set()
}

test_a_denial_that_is_malformed_denies if {
	every wish in [
		true, false, null, 7, "closed", sound,
		["closed"], [7], [[]], [{}],
		[object.remove(sound, ["reason"])], [object.remove(sound, ["message"])],
		[object.union(sound, {"reason": ""})], [object.union(sound, {"message": 7})],
		[object.union(sound, {"rule": 7})], [object.union(sound, {"until": 7})],
	] {
		[[deny.reason, deny.rule] | some deny in denied(wish)] == [["InvalidDeny", "extend.protection.shop"]]
	}
}

test_what_is_on_its_way_out_is_not_denied if {
	protection.user_deny == set() with data.extend.protection.shop.deny as [sound] with input.object as {"terminating": true}
}

exempted(wish) := exempt if {
	exempt := protection.user_exempt with data.extend.protection.shop.exempt as wish
}

test_a_sound_exemption_gets_the_name_of_its_package if {
	exempted([sound]) == {{"rule": "extend.protection.shop", "reason": "Closed", "message": "The shop is closed."}}
	exempted([object.union(sound, {"rule": "mine"})]) == {object.union(sound, {"rule": "mine"})}
}

test_an_exemption_that_is_malformed_exempts_nobody if {
	every wish in [
		true, null, 7, "open", sound, [], {}, ["open"], [7], [[]], [{}],
		[object.remove(sound, ["reason"])], [object.remove(sound, ["message"])],
		[object.union(sound, {"reason": ""})], [object.union(sound, {"message": 7})],
		[object.union(sound, {"rule": ""})], [object.union(sound, {"rule": 7})],
		[object.union(sound, {"until": "2026-01-05T09:00:00Z"})], [object.union(sound, {"namespace": "shop"})],
	] {
		exempted(wish) == set()
	}
}

glass(reason, settings) := {"exempt": exempts, "hints": [hint.reason | some hint in hints]} if {
	facts := {
		"request": {"operation": "DELETE", "user": {"name": "ann", "groups": ["dev", "sre"]}},
		"object": {"kind": "Pod", "name": "web-1", "annotations": {"policy.kruise.io/break-glass": reason}},
	}
	exempts := protection.user_exempts with input as facts with data.extend.protection.shop.settings as settings
	hints := protection.user_hints with input as facts with data.extend.protection.shop.settings as settings
}

test_who_may_break_the_glass_says_why if {
	every who in [{"users": ["ann"]}, {"groups": ["sre"]}, {"users": {"ann"}, "groups": []}] {
		glass("ticket 7 ", {"breakGlass": who}) == {
			"exempt": [{"rule": "protection.break-glass", "reason": "BreakGlass", "message": "ann broke the glass for DELETE of Pod web-1: ticket 7"}],
			"hints": [],
		}
	}
}

test_a_long_reason_is_cut if {
	long := concat("", ["x" | some _ in numbers.range(1, 1000)])
	answer := glass(long, {"breakGlass": {"users": ["ann"]}})
	count(answer.exempt[0].message) < 400
}

test_without_a_reason_the_glass_stays_whole if {
	every reason in ["", " \t"] {
		glass(reason, {"breakGlass": {"users": ["ann"]}}) == {"exempt": [], "hints": ["BreakGlassNeedsReason"]}
		glass(reason, {}) == {"exempt": [], "hints": []}
	}
}

test_nobody_else_breaks_the_glass if {
	every settings in [
		true, {}, {"breakGlass": true}, {"breakGlass": {"users": ["bob"], "groups": ["ops"]}},
		{"breakGlass": {"users": "ann", "groups": "sre"}}, {"breakGlass": {"users": {"who": "ann"}, "groups": {"who": "sre"}}},
		{"breakGlass": {"users": [""], "groups": [7]}}, {"breakGlass": {"users": ["sre"], "groups": ["ann"]}},
	] {
		glass("ticket 7", settings) == {"exempt": [], "hints": ["BreakGlassNotAllowed"]}
	}
}

test_without_the_annotation_nothing_is_said_of_it if {
	protection.user_hints == [] with input.object as {"name": "web-1"}
	protection.user_exempts == [] with input.object as {"name": "web-1"}
}
