package placement

import future.keywords.not

# METADATA
# scope: document
# title: Which namespaces have a copy
# description: |
#   Which namespaces have a copy of the object of a ResourceDistribution (RD-01), and who
#   holds or refuses it.
# entrypoint: true
# labels:
#   id: placement.distribution.no-facts
default distribution := {
	"namespaces": [],
	"holds": [{
		"rule": "placement.distribution.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of this ResourceDistribution are not complete, so all copies stay as they are.",
	}],
	"denials": [],
}

# METADATA
# title: Those that the spec asks for
# description: |
#   All that the spec asks for and does not leave out again, but neither kube-system nor
#   kube-public, and none that a rule denies.
# labels:
#   id: placement.distribution
distribution := {
	"namespaces": [namespace.name |
		some namespace in input.namespaces
		not namespace.excluded
		not namespace.name in distribution_system
	],
	"holds": [hold | some hold in user_hold],
	"denials": [deny | some deny in user_deny],
} if {
	is_string(input.distribution.name)
	is_array(input.namespaces)
}

# METADATA
# title: The namespaces of the system
# description: A ResourceDistribution never reaches the namespaces that the cluster itself runs in.
# labels:
#   id: placement.distribution.system
distribution_system := {"kube-system", "kube-public"}
