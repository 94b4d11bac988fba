package node

import future.keywords.not

import data.lib.wishes

# METADATA
# title: The holds of users
# description: |
#   The union of `hold` in all packages data.extend.node.<package>. A hold that is
#   malformed still holds, and so does a denial: its author meant to stop something.
# labels:
#   id: node.hold
user_hold := sound | user_unsound if {
	sound := {hold |
		some [pkg, wish] in user_hold_wish
		user_sound_hold(wish)
		hold := wishes.told("extend.node", pkg, wish, {"rule", "reason", "message", "until"})
	}
}

# METADATA
# title: The holds of users, of images
# description: Those of node.hold, with the nodes that they are limited to.
# labels:
#   id: node.hold.images
user_hold_images := sound | user_unsound if {
	sound := {hold |
		some [pkg, wish] in user_hold_wish
		user_sound_hold(wish)
		hold := wishes.told("extend.node", pkg, wish, {"rule", "reason", "message", "until", "where", "node", "room"})
	}
}

user_unsound := (malformed | unreadable) | refused if {
	malformed := {wishes.invalid("extend.node", pkg, "hold") |
		some [pkg, wish] in user_hold_wish
		not user_sound_hold(wish)
	}
	unreadable := {wishes.invalid("extend.node", pkg, rule) |
		some rule in {"hold", "deny"}
		some pkg
		wishes.unreadable(data.extend.node[pkg][rule])
	}
	refused := {wishes.invalid("extend.node", pkg, "deny") |
		some [pkg, wish] in user_deny_wish
		not wishes.sound(wish, {"rule", "container", "node"})
	}
}

# METADATA
# title: The denials of users
# description: |
#   The union of `deny` in all packages data.extend.node.<package>: a container, or all
#   of the request, that is not restarted for it; a node, or all of the job, that does not
#   pull its image.
# labels:
#   id: node.deny
user_deny := {deny |
	some [pkg, wish] in user_deny_wish
	wishes.sound(wish, {"rule", "container", "node"})
	deny := wishes.told("extend.node", pkg, wish, {"rule", "reason", "message", "container", "node"})
}

user_hold_wish := {[pkg, wish] | some pkg; some wish in data.extend.node[pkg].hold}

user_deny_wish := {[pkg, wish] | some pkg; some wish in data.extend.node[pkg].deny}

user_sound_hold(wish) if {
	wishes.sound(wish, {"rule", "until", "node"})
	is_object(object.get(wish, "where", {}))
	every value in object.get(wish, "where", {}) {
		is_string(value)
	}
	user_whole(object.get(wish, "room", 0))
}

user_whole(n) if {
	is_number(n)
	floor(n) == n
}
