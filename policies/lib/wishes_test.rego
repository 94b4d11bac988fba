package lib.wishes_test

import future.keywords.not

import data.lib.wishes

test_an_element_needs_a_reason_and_a_message if {
	wishes.sound({"reason": "R", "message": "m"}, {"rule"})
	every wish in [1, "x", {}, {"reason": "R"}, {"reason": "", "message": "m"}] {
		not wishes.sound(wish, {"rule"})
	}
}

test_an_optional_field_is_a_string if {
	wishes.sound({"reason": "R", "message": "m", "target": "x"}, {"target"})
	not wishes.sound({"reason": "R", "message": "m", "target": 1}, {"target"})
}

test_a_field_of_no_meaning_is_left_out if {
	wishes.told("extend.x", "p", {"reason": "R", "message": "m", "more": 1, "until": ""}, {"reason", "message", "until"}) == {"rule": "extend.x.p", "reason": "R", "message": "m"}
}

test_a_rule_that_is_no_set_is_unreadable if {
	wishes.unreadable(true)
	not wishes.unreadable(set())
}

test_what_takes_the_place_of_an_element_names_its_package if {
	hold := wishes.invalid("extend.x", "p", "deny")
	hold.rule == "extend.x.p"
	startswith(hold.message, "The package extend.x.p has an element of deny that is none")
}
