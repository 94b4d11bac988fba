package rollout

import future.keywords.not

# METADATA
# title: The holds of users
# description: |
#   The union of `hold` in all packages data.extend.rollout.<package>. A hold
#   that is malformed still holds: its author meant to stop something. One that names
#   another namespace than that of the workload holds nothing of it.
# labels:
#   id: rollout.hold
user_hold := (sound | malformed) | unreadable if {
	sound := {object.union({"rule": concat(".", ["extend.rollout", pkg])}, hold) |
		some [pkg, wish] in user_sound_wish
		said := {key: value |
			some key, value in wish
			key in {"rule", "reason", "message", "where", "pod", "namespace", "until", "run", "newPods"}
			value != ""
		}
		some hold in user_in_workload(said)
	}
	malformed := {hold |
		some [pkg, wish] in (user_wish - user_sound_wish)
		said := object.union(user_invalid_hold(pkg), {key: value |
			some key in ["pod", "namespace"]
			value := wish[key]
			user_name(value)
		})
		some hold in user_in_workload(said)
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
	every field in ["rule", "until"] {
		is_string(object.get(wish, field, ""))
	}
	every field in ["pod", "namespace"] {
		name := object.get(wish, field, "")
		is_string(name)
		not contains(name, "/")
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

# A name with its namespace, such as shop/web-0, is that of no pod: it would hold none.
user_name(name) if {
	is_string(name)
	name != ""
	not contains(name, "/")
}

# The hold, or none: nothing that is in another namespace is of this workload. What all its
# pods have in common need not be said, so that a hold of the whole workload stays one.
user_in_workload(hold) := [hold] if {
	not hold.namespace
} else := [hold] if {
	user_namespace == ""
} else := [object.remove(hold, ["namespace"])] if {
	hold.namespace == user_namespace
} else := []

user_namespace := object.get(input, ["workload", "namespace"], "")

user_invalid_hold(pkg) := {
	"rule": concat(".", ["extend.rollout", pkg]),
	"reason": "InvalidHold",
	"message": sprintf("The package extend.rollout.%s holds with something that is no hold: it needs the strings reason and message, where only by a known dimension, and the names of a pod and a namespace apart, as pod and namespace. It is taken to hold all that it could.", [pkg]),
}
