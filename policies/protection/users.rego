package protection

import future.keywords.not

# METADATA
# title: The denials of users
# description: |
#   The union of `deny` in all packages data.extend.protection.<package>. One that
#   is malformed still denies: its author meant to refuse something. An object that
#   is terminating already is let go, or it could never end.
# labels:
#   id: protection.deny
user_deny := (sound | malformed) | unreadable if {
	user_denies_it
	sound := {object.union({"rule": concat(".", ["extend.protection", pkg])}, deny) |
		some [pkg, wish] in user_sound_wish
		deny := {key: value |
			some key, value in wish
			key in {"rule", "reason", "message", "until"}
			value != ""
		}
	}
	malformed := {user_invalid_deny(pkg) |
		some pkg, wishes in user_denies
		some wish in wishes
		not [pkg, wish] in user_sound_wish
	}
	unreadable := {user_invalid_deny(pkg) |
		some pkg, wishes in user_denies
		not type_name(wishes) in {"array", "object", "set"}
	}
} else := set()

# Whether any policy denies, which is asked far more often than which one.
user_denies_it if {
	not input.object.terminating
	some pkg
	wishes := data.extend.protection[pkg].deny
	not wishes in [set(), [], {}]
}

user_denies := {pkg: wishes |
	some pkg
	wishes := data.extend.protection[pkg].deny
	not wishes in [set(), [], {}]
}

user_sound_wish := {[pkg, wish] |
	some pkg, wishes in user_denies
	some wish in wishes
	user_says_why(wish)
	every field in ["rule", "until"] {
		is_string(object.get(wish, field, ""))
	}
}

user_says_why(wish) if {
	is_object(wish)
	every field in ["reason", "message"] {
		is_string(wish[field])
		wish[field] != ""
	}
}

user_invalid_deny(pkg) := {
	"rule": concat(".", ["extend.protection", pkg]),
	"reason": "InvalidDeny",
	"message": sprintf("The package extend.protection.%s denies with something that is no denial: it needs the strings reason and message. It is taken to refuse all that it could.", [pkg]),
}

# METADATA
# title: The exemptions
# description: |
#   Those of the packages of platform engineers, and the broken glass. One that
#   is malformed has no effect. Neither has one with an unknown field: its author
#   may have meant that as a condition.
# labels:
#   id: protection.exempt
user_exempt := exempt if {
	own := {object.union({"rule": concat(".", ["extend.protection", pkg])}, wish) |
		some pkg
		some wish in data.extend.protection[pkg].exempt
		user_says_why(wish)
		object.keys(wish) - {"rule", "reason", "message"} == set()
		object.get(wish, "rule", "x") != ""
		is_string(object.get(wish, "rule", ""))
	}
	exempt := own | user_broken_glass
	count(exempt) > 0
} else := set()

# METADATA
# title: Broken glass
# description: |
#   The object has the annotation policy.kruise.io/break-glass with a reason, and
#   the user is among settings.breakGlass.users or groups of a platform bundle.
# labels:
#   id: protection.break-glass
user_broken_glass contains {
	"rule": "protection.break-glass",
	"reason": "BreakGlass",
	"message": sprintf("%s broke the glass for %s of %s %s: %s", [input.request.user.name, input.request.operation, input.object.kind, input.object.name, substring(user_glass, 0, 300)]),
} if {
	user_glass != ""
	user_may_break_glass
}

user_glass := trim_space(input.object.annotations["policy.kruise.io/break-glass"])

user_may_break_glass if {
	some pkg
	names := data.extend.protection[pkg].settings.breakGlass.users
	type_name(names) in {"array", "set"}
	input.request.user.name in names
}

user_may_break_glass if {
	some pkg
	names := data.extend.protection[pkg].settings.breakGlass.groups
	type_name(names) in {"array", "set"}
	some group in input.request.user.groups
	group in names
}

# METADATA
# title: The glass was broken without a reason
# description: The user may, but the annotation is empty, and without a reason it counts for nothing.
# labels:
#   id: protection.break-glass.no-reason
user_hint contains {
	"rule": "protection.break-glass.no-reason",
	"reason": "BreakGlassNeedsReason",
	"message": "The annotation policy.kruise.io/break-glass exempts only with a reason, and it is empty: write why as its value.",
} if {
	user_glass == ""
	user_may_break_glass
}

# METADATA
# title: The glass is not for this user
# description: The annotation counts only for users that a platform bundle names.
# labels:
#   id: protection.break-glass.not-allowed
user_hint contains {
	"rule": "protection.break-glass.not-allowed",
	"reason": "BreakGlassNotAllowed",
	"message": sprintf("The annotation policy.kruise.io/break-glass does not count for %s, whom no setting breakGlass of a platform bundle names.", [input.request.user.name]),
} if {
	user_glass != ""
	not user_may_break_glass
}

user_hints := [hint | some hint in user_hint]

user_exempts := [exempt | some exempt in user_exempt]

# What an exemption sets aside where no policy decided.
user_undecided := {
	"rule": "engine",
	"reason": "NoDecision",
	"message": sprintf("No policy could decide about %s of %s %s, and an exemption lets it through.", [input.request.operation, input.object.kind, input.object.name]),
}
