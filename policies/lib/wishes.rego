# METADATA
# title: What rules of users ask for
# description: |
#   How the elements of `hold` and `deny` in packages of users are read. A domain hands over
#   one element at a time: no data of users is read here.
package lib.wishes

# METADATA
# title: Whether an element is well formed
# description: It has a reason and a message, and each optional field that it has is a string.
sound(wish, optional) if {
	is_object(wish)
	every field in ["reason", "message"] {
		is_string(wish[field])
		wish[field] != ""
	}
	every field in optional {
		is_string(object.get(wish, field, ""))
	}
}

# METADATA
# title: The fields of an element
# description: What is left empty is left out, and an element without a rule has the name of its package.
told(prefix, pkg, wish, fields) := object.union(
	{"rule": concat(".", [prefix, pkg])},
	{key: value | some key, value in wish; key in fields; value != ""},
)

# METADATA
# title: A rule that is no set
# description: Its elements cannot be read, so it holds all that it could.
unreadable(value) if type_name(value) in {"boolean", "null", "number", "string"}

# METADATA
# title: The hold that takes the place of an element that is malformed
invalid(prefix, pkg, rule) := {
	"rule": concat(".", [prefix, pkg]),
	"reason": "InvalidHold",
	"message": sprintf("The package %s.%s has an element of %s that is none: it needs the strings reason and message. It is taken to hold all that it could.", [prefix, pkg, rule]),
}
