package injection

import future.keywords.not

# METADATA
# title: The SidecarSets that users leave out
# description: |
#   The union of `skip` in all packages data.extend.injection.<package>, by SidecarSet.
#   Where several leave one out, the first by package and rule gives the reason. One
#   that is malformed has no effect: the pod keeps what protects or serves it.
# labels:
#   id: injection.skip
user_skip := {set: sort(wishes)[0][1] | some set, wishes in user_by_set(user_skips)} if {
	user_skips != set()
} else := {}

# METADATA
# title: The SidecarSets that users add
# description: |
#   The union of `add` in all packages data.extend.injection.<package>, by SidecarSet.
#   A SidecarSet that is paused or skipped is not added.
# labels:
#   id: injection.add
user_add := {set: sort(wishes)[0][1] | some set, wishes in user_by_set(user_adds)} if {
	user_adds != set()
} else := {}

user_skips := {[pkg, wish] |
	some pkg
	some wish in data.extend.injection[pkg].skip
	user_sound(wish)
}

user_adds := {[pkg, wish] |
	some pkg
	some wish in data.extend.injection[pkg].add
	user_sound(wish)
}

user_by_set(wishes) := {wish.set: own |
	some [_, wish] in wishes
	own := {[pkg, because] |
		some [pkg, other] in wishes
		other.set == wish.set
		because := object.union({"rule": concat(".", ["extend.injection", pkg])}, object.remove(other, ["set"]))
	}
}

user_sound(wish) if {
	is_object(wish)
	every field in ["set", "reason", "message"] {
		is_string(wish[field])
		wish[field] != ""
	}
	is_string(object.get(wish, "rule", ""))
	object.get(wish, "rule", "x") != ""
	object.keys(wish) - {"set", "rule", "reason", "message"} == set()
}

# METADATA
# title: What comes first
# description: The setting first of all packages, in the order of their names.
# labels:
#   id: injection.first
user_first := [name |
	some [_, names] in sort([[pkg, names] |
		some pkg
		names := data.extend.injection[pkg].settings.first
	])
	is_array(names)
	some name in names
	is_string(name)
]
