package rollout

import future.keywords.not

# METADATA
# title: The holds of users
# description: |
#   The union of `hold` in all packages data.extend.rollout.<package>. A hold
#   that is malformed still holds: its author meant to stop something.
# labels:
#   id: rollout.hold
user_hold := (sound | malformed) | unreadable if {
	sound := {object.union({"rule": concat(".", ["extend.rollout", pkg])}, hold) |
		some [pkg, wish] in user_sound_wish
		hold := {key: value |
			some key, value in wish
			key in {"rule", "reason", "message", "where", "pod", "until", "run", "newPods"}
			value != ""
		}
	}
	malformed := {object.union(user_invalid_hold(pkg), {"pod": pod | pod := wish.pod; is_string(pod); pod != ""}) |
		some [pkg, wish] in (user_wish - user_sound_wish)
	}
	unreadable := {user_invalid_hold(pkg) |
		some pkg
		type_name(data.extend.rollout[pkg].hold) in {"boolean", "null", "number", "string"}
	}
	all := (sound | malformed) | unreadable
	count(all) > 0
} else := set()

user_wish := {[pkg, wish] | some pkg; some wish in data.extend.rollout[pkg].hold}

user_sound_wish := {[pkg, wish] |
	some [pkg, wish] in user_wish
	is_object(wish)
	every field in ["reason", "message"] {
		is_string(wish[field])
		wish[field] != ""
	}
	every field in ["rule", "pod", "until"] {
		is_string(object.get(wish, field, ""))
	}
	object.get(wish, "run", "") in {"", "Wait", "Skip"}
	object.get(wish, "newPods", "") in {"", "Current", "Update"}
	where := object.get(wish, "where", {})
	is_object(where)
	every dimension, group in where {
		dimension in user_dimensions
		is_string(group)
	}
}

# A dimension that pods are not told apart by would hold none of them.
user_dimensions := {"zone", "region"} | {dimension | some dimension, _ in input.groups}

user_invalid_hold(pkg) := {
	"rule": concat(".", ["extend.rollout", pkg]),
	"reason": "InvalidHold",
	"message": sprintf("The package extend.rollout.%s holds with something that is no hold: it needs the strings reason and message, and where only by a known dimension. It is taken to hold all that it could.", [pkg]),
}
