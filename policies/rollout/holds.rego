package rollout

import future.keywords.not

# METADATA
# title: The holds of users
# description: |
#   The union of `hold` in all packages data.extend.rollout.<package>. A hold
#   that is malformed still holds: whoever wrote it meant to stop something.
# labels:
#   id: rollout.hold
user_hold := (sound | unsound) | unreadable if {
	sound := {hold |
		some [pkg, wish] in user_sound_wish
		hold := object.union(
			{"rule": concat(".", ["extend.rollout", pkg])},
			object.filter(wish, ["rule", "reason", "message", "where", "pod", "until"]),
		)
	}
	unsound := {hold |
		some [pkg, wish] in (user_wish - user_sound_wish)
		hold := object.union(user_invalid_hold(pkg), {"pod": pod | pod := wish.pod; is_string(pod)})
	}
	unreadable := {hold |
		some pkg
		type_name(data.extend.rollout[pkg].hold) in {"boolean", "null", "number", "string"}
		hold := user_invalid_hold(pkg)
	}
}

user_wish := {[pkg, wish] | some pkg; some wish in data.extend.rollout[pkg].hold}

user_sound_wish := {[pkg, wish] |
	some [pkg, wish] in user_wish
	is_string(wish.reason)
	wish.reason != ""
	is_string(wish.message)
	wish.message != ""
	is_string(object.get(wish, "rule", ""))
	is_string(object.get(wish, "pod", ""))
	is_string(object.get(wish, "until", ""))
	where := object.get(wish, "where", {})
	is_object(where)
	every dimension, group in where {
		dimension in user_dimensions
		is_string(group)
	}
}

# A dimension that pods are not told apart by would hold none of them.
user_dimensions := {"zone", "region"} | object.keys(object.get(input, "groups", {}))

user_invalid_hold(pkg) := {
	"rule": concat(".", ["extend.rollout", pkg]),
	"reason": "InvalidHold",
	"message": sprintf("The package extend.rollout.%s holds with something that is not a set of objects with the strings reason and message, so it is taken to hold all it may.", [pkg]),
}
