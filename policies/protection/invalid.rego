package protection

import future.keywords.not

# METADATA
# scope: document
# title: What is wrong with guards and settings
# description: |
#   Asked when a bundle is checked, not when something is decided: what does not
#   depend on a request is wrong at once or never, so its author sees it there.
#   Decisions read the sound part of what is wrong all the same.
# labels:
#   id: protection.invalid
invalid contains invalid_in(pkg, "guard", "it names nothing when its input has the gates alone, which is all the input that a guard has") if {
	some pkg
	count(data.extend.protection[pkg].guard) == 0
}

invalid contains invalid_in(pkg, "guard", sprintf("a guard is an object, but this is %v", [guard])) if {
	some pkg
	some guard in data.extend.protection[pkg].guard
	not is_object(guard)
}

invalid contains invalid_in(pkg, "guard", sprintf("a guard has no field %v; there are failurePolicy, group, labels, namespaces, operations, resource, rule", [field])) if {
	some [pkg, guard] in invalid_guards
	some field in (object.keys(guard) - {"failurePolicy", "group", "labels", "namespaces", "operations", "resource", "rule"})
}

invalid contains invalid_in(pkg, "guard", sprintf("resource %v of group %v is never sent: name one in the plural, without a wildcard, that is neither nodes nor leases", [object.get(guard, "resource", "(none)"), object.get(guard, "group", "(none)")])) if {
	some [pkg, guard] in invalid_guards
	not guards_may_be_sent(guard.group, guard.resource)
}

invalid contains invalid_in(pkg, "guard", sprintf("operations of %s are %v, want a list of %s", [guard.resource, operations, concat(", ", known)])) if {
	some [pkg, guard] in invalid_guards
	known := guards_operations(guard.group, guard.resource)
	operations := object.get(guard, "operations", [])
	not invalid_sound(operations, known)
}

invalid contains invalid_in(pkg, "guard", sprintf("namespaces are %v, want a list of names", [guard.namespaces])) if {
	some [pkg, guard] in invalid_guards
	not invalid_sound(guard.namespaces, guards_namespaces(guard))
	guard.namespaces != []
}

invalid contains invalid_in(pkg, "guard", sprintf("labels are %v, want an object of labels and their values", [guard.labels])) if {
	some [pkg, guard] in invalid_guards
	guard.labels != guards_labels(guard)
}

invalid contains invalid_in(pkg, "guard", sprintf("failurePolicy is %v, want Fail or Ignore", [guard.failurePolicy])) if {
	some [pkg, guard] in invalid_guards
	not guard.failurePolicy in {"Fail", "Ignore"}
}

invalid contains invalid_in(pkg, "settings", sprintf("there is no setting %v; there are breakGlass and kinds", [field])) if {
	some pkg
	some field, _ in data.extend.protection[pkg].settings
	not field in {"breakGlass", "kinds"}
}

invalid contains invalid_in(pkg, "settings", sprintf("%s is %v, want an object", [field, value])) if {
	some pkg
	some field in ["breakGlass", "kinds"]
	value := data.extend.protection[pkg].settings[field]
	not is_object(value)
}

invalid contains invalid_in(pkg, "settings", sprintf("kinds has %v, want a resource in the plural and its group, such as cronjobs.batch", [name])) if {
	some [pkg, name, _] in invalid_kinds
	not guards_may_be_sent(guards_parts(name)[1], guards_parts(name)[0])
}

invalid contains invalid_in(pkg, "settings", sprintf("kinds has %s, which is protected already and stays as it is", [name])) if {
	some [pkg, name, _] in invalid_kinds
	guards_is_builtin(guards_parts(name)[1], guards_parts(name)[0])
}

invalid contains invalid_in(pkg, "settings", sprintf("kinds has %v for %v, want {\"cascading\": \"replicas\"}, or \"\" for nothing", [kind, name])) if {
	some [pkg, name, kind] in invalid_kinds
	not kind in [{"cascading": ""}, {"cascading": "replicas"}, {}]
}

invalid contains invalid_in(pkg, "settings", sprintf("breakGlass has %v: %v, want users or groups, and lists of their names", [field, names])) if {
	some pkg
	some field, names in data.extend.protection[pkg].settings.breakGlass
	not invalid_names(field, names)
}

invalid_guards := {[pkg, guard] | some pkg; some guard in data.extend.protection[pkg].guard; is_object(guard)}

invalid_kinds := {[pkg, name, kind] | some pkg; some name, kind in data.extend.protection[pkg].settings.kinds; is_string(name)}

invalid_in(pkg, rule, message) := {"package": pkg, "rule": rule, "message": message}

# A list that is not empty, and has nothing but what it may have.
invalid_sound(list, may) if {
	type_name(list) in {"array", "set"}
	count(list) > 0
	every item in list {
		item in may
	}
}

invalid_names(field, names) if {
	field in {"users", "groups"}
	type_name(names) in {"array", "set"}
	every name in names {
		is_string(name)
		name != ""
	}
}
