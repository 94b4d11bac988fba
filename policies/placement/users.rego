package placement

import future.keywords.not

import data.lib.wishes

# METADATA
# title: The holds of users
# description: |
#   The union of `hold` in all packages data.extend.placement.<package>. A hold that is
#   malformed still holds, and so does a denial: its author meant to stop something.
# labels:
#   id: placement.hold
user_target_hold := ((sound | malformed) | unreadable) | refused if {
	sound := {wishes.told("extend.placement", pkg, wish, {"rule", "reason", "message", "target", "until"}) |
		some [pkg, wish] in user_hold_wish
		wishes.sound(wish, {"rule", "target", "until"})
	}
	malformed := {wishes.invalid("extend.placement", pkg, "hold") |
		some [pkg, wish] in user_hold_wish
		not wishes.sound(wish, {"rule", "target", "until"})
	}
	unreadable := {wishes.invalid("extend.placement", pkg, rule) |
		some rule in {"hold", "deny"}
		some pkg
		wishes.unreadable(data.extend.placement[pkg][rule])
	}
	refused := {wishes.invalid("extend.placement", pkg, "deny") |
		some [pkg, wish] in user_deny_wish
		not user_deny_sound(wish)
	}
}

# METADATA
# title: The denials of users
# description: |
#   The union of `deny` in all packages data.extend.placement.<package>: a place, or all
#   places, that the object does not go to.
# labels:
#   id: placement.deny
user_room_deny := {wishes.told("extend.placement", pkg, wish, {"rule", "reason", "message", "target", "room"}) |
	some [pkg, wish] in user_deny_wish
	user_deny_sound(wish)
}

# Room is a whole number.
user_deny_sound(wish) if {
	wishes.sound(wish, {"rule", "target"})
	room := object.get(wish, "room", 0)
	is_number(room)
	room >= 0
	floor(room) == room
}

# Of points that know no room: what is denied is denied whole.
user_deny := {object.remove(deny, {"room"}) | some deny in user_room_deny}

# Of points that know no single places: what holds one of them holds all.
user_hold := {object.remove(hold, {"target"}) | some hold in user_target_hold}

user_hold_wish := {[pkg, wish] | some pkg; some wish in data.extend.placement[pkg].hold}

user_deny_wish := {[pkg, wish] | some pkg; some wish in data.extend.placement[pkg].deny}

# METADATA
# title: The ranks of users
# description: Each package has its say, in the order of the package names. What is no number is left out.
# labels:
#   id: placement.rank
user_columns := [places | some places in user_ranks]

# An object, because its values come in the order of its keys.
user_ranks := {pkg: places |
	some pkg
	wishes := data.extend.placement[pkg].rank
	places := {target: place | some target, place in wishes; is_number(place)}
}

ranked(names) := names if {
	every column in user_columns {
		count(column) == 0
	}
} else := by_rank(names)

# METADATA
# title: By the ranks of users
# description: |
#   `rank` of each package data.extend.placement.<package> in the order of the package
#   names, the lower first; a place that it does not name has 0. Places of one rank keep
#   the order that they have without.
# labels:
#   id: placement.rank.order
by_rank(names) := [names[key[1]] |
	some key in sort([[places, i] |
		some i, name in names
		places := [object.get(column, name, 0) | some column in user_columns]
	])
]
