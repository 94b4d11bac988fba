package placement_test

import data.placement

distributing := {"distribution": {"name": "ca", "kind": "Secret", "object": "ca"}, "namespaces": [{"name": "bank"}, {"name": "kube-system"}, {"name": "shop", "excluded": true}]}

test_without_facts_nothing_changes if {
	answer := placement.distribution with input as {}
	answer.namespaces == []
	answer.holds[0].reason == "FactsMissing"
}

test_neither_what_is_excluded_nor_the_system if {
	answer := placement.distribution with input as distributing
	answer == {"namespaces": ["bank"], "holds": [], "denials": []}
}
