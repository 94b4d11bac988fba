package protection

import future.keywords.not

# METADATA
# scope: document
# title: What protection is asked about
# description: |
#   The kinds whose objects the label policy.kruise.io/delete-protection protects,
#   and what the rules of users want to be asked about besides. Nothing else ever
#   leaves the API server. There is no default on purpose: without an answer all
#   stays as it was, and a default of nothing would end every protection.
# entrypoint: true
# labels:
#   id: protection.guards
guards := {"kinds": guards_kinds, "guards": guards_users} if is_boolean(input.gates.deletion)

# Each kind with what the label's value Cascading counts; "" where it protects nothing.
guards_builtin := [
	{"group": "", "resource": "namespaces", "cascading": "namespace"},
	{"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "cascading": "customresources"},
	{"group": "apps", "resource": "deployments", "cascading": "replicas"},
	{"group": "apps", "resource": "replicasets", "cascading": "replicas"},
	{"group": "apps", "resource": "statefulsets", "cascading": "replicas"},
	{"group": "apps.kruise.io", "resource": "clonesets", "cascading": "replicas"},
	{"group": "apps.kruise.io", "resource": "statefulsets", "cascading": "replicas"},
	{"group": "apps.kruise.io", "resource": "uniteddeployments", "cascading": "replicas"},
	{"group": "", "resource": "services", "cascading": ""},
	{"group": "networking.k8s.io", "resource": "ingresses", "cascading": ""},
]

guards_kinds := array.concat(guards_builtin, guards_more) if {
	input.gates.deletion
} else := []

# METADATA
# title: Kinds of settings
# description: |
#   The union of `settings.kinds` in all packages data.extend.protection.<package>,
#   by resource and group, e.g. "cronjobs.batch". What is built in stays as it is;
#   of two that disagree about Cascading the one that protects more is heard.
# labels:
#   id: protection.guards.kinds
guards_more := [{"group": group, "resource": resource, "cascading": cascading} |
	some name in guards_named
	[resource, group] := guards_parts(name)
	guards_may_be_sent(group, resource)
	not guards_is_builtin(group, resource)
	cascading := max({""} | {value |
		value := data.extend.protection[_].settings.kinds[name].cascading
		value in {"", "replicas"}
	})
] if {
	count(guards_named) > 0
} else := []

guards_named := {name |
	kinds := data.extend.protection[_].settings.kinds
	is_object(kinds)
	some name, _ in kinds
	is_string(name)
}

# The resource has no dot, and the group, which may have some, follows the first.
guards_parts(name) := [words[0], concat(".", array.slice(words, 1, count(words)))] if {
	words := split(name, ".")
}

guards_is_builtin(group, resource) if {
	some kind in guards_builtin
	kind.group == group
	kind.resource == resource
}

# What an API server takes as one resource of one group; no wildcards, and never
# what a cluster needs to heal.
guards_may_be_sent(group, resource) if {
	is_string(group)
	is_string(resource)
	regex.match(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`, resource)
	regex.match(`^([a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?)?$`, group)
	not [group, resource] in {["", "nodes"], ["coordination.k8s.io", "leases"]}
}

# METADATA
# title: The guards of users
# description: |
#   The union of `guard` in all packages data.extend.protection.<package>, in an
#   order. One that names no resource or no operation is left out. Of namespaces
#   and labels only those that can be are taken, so a guard that is malformed is
#   about more rather than less, and a failurePolicy that is unknown is Fail.
# labels:
#   id: protection.guards.users
guards_users := [guard | some [_, _, _, guard] in guards_sound] if {
	count(guards_sound) > 0
} else := []

guards_sound := {[rule, wish.group, wish.resource, guard] |
	some pkg
	some wish in data.extend.protection[pkg].guard
	is_object(wish)
	guards_may_be_sent(wish.group, wish.resource)
	operations := {operation |
		some operation in wish.operations
		operation in guards_operations(wish.group, wish.resource)
	}
	count(operations) > 0
	rule := guards_rule(pkg, wish)
	guard := object.union(
		{
			"rule": rule,
			"group": wish.group,
			"resource": wish.resource,
			"operations": [operation | some operation in operations],
			"namespaces": [namespace | some namespace in guards_namespaces(wish)],
			"labels": guards_labels(wish),
		},
		guards_failure_policy(wish),
	)
}

# A failure policy that is neither Fail nor Ignore counts as Fail.
guards_failure_policy(wish) := {"failurePolicy": "Fail"} if {
	wish.failurePolicy != "Ignore"
} else := {}

# Only pods are evicted or resized.
guards_operations("", "pods") := {"DELETE", "EVICT", "UPDATE", "RESIZE"}

guards_operations(group, resource) := {"DELETE", "UPDATE"} if [group, resource] != ["", "pods"]

guards_rule(pkg, wish) := wish.rule if {
	is_string(wish.rule)
	wish.rule != ""
} else := concat(".", ["extend.protection", pkg])

guards_namespaces(wish) := {namespace |
	some namespace in wish.namespaces
	is_string(namespace)
	regex.match(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`, namespace)
}

guards_labels(wish) := {key: value |
	is_object(wish.labels)
	some key, value in wish.labels
	is_string(key)
	regex.match(`^([a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`, key)
	is_string(value)
	regex.match(`^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`, value)
}
