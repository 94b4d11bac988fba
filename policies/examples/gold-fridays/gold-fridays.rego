# METADATA
# title: Gold stays on Fridays
# description: No user deletes or evicts a gold pod on a Friday. Kubernetes itself may.
package extend.protection.gold_fridays

import future.keywords.not

# Edit this. Days are named as in English, and begin at midnight in the time zone.
gold := {
	"labels": {"shop.example/tier": "gold"},
	"day": "Friday",
	"timezone": "Europe/Berlin",
	# Groups that may: controllers, which scale and clean up, and nodes.
	"except": ["system:serviceaccounts:kube-system", "system:serviceaccounts:kruise-system", "system:nodes"],
}

# Selects the requests that the API server asks the manager about. Without a guard it asks about none.
guard contains {"group": "", "resource": "pods", "operations": ["DELETE", "EVICT"], "labels": gold.labels}

# METADATA
# title: A gold pod on a Friday
# description: The pod has the labels of gold, and it is that day in the time zone.
# labels:
#   id: gold-fridays.closed
deny contains {
	"rule": "gold-fridays.closed",
	"reason": "GoldStaysToday",
	"message": sprintf("Pod %s/%s is gold and stays on %ss (%s). Try again tomorrow.", [input.object.namespace, input.object.name, gold.day, gold.timezone]),
} if {
	input.request.operation in {"DELETE", "EVICT"}
	input.object.kind == "Pod"
	every key, value in gold.labels {
		input.object.labels[key] == value
	}
	time.weekday([input.now, gold.timezone]) == gold.day
	not excepted
}

excepted if {
	some group in input.request.user.groups
	group in gold.except
}
