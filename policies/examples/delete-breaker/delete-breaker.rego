# METADATA
# title: A circuit breaker for deletes
# description: |
#   Not more than so many objects of a resource are deleted in a namespace in a
#   minute. Who deletes by mistake is stopped while there is something left.
package extend.protection.delete_breaker

import future.keywords.not

# Edit this.
breaker := {
	"deletes": 20,
	"resources": ["pods", "persistentvolumeclaims", "services", "deployments.apps", "statefulsets.apps", "clonesets.apps.kruise.io"],
	# Groups that are never stopped, though what they delete counts: controllers.
	"except": ["system:serviceaccounts:kube-system", "system:serviceaccounts:kruise-system", "system:nodes"],
}

# Selects the requests that the API server asks the manager about. Without a guard it asks about none.
guard contains {"group": concat(".", array.slice(parts, 1, count(parts))), "resource": parts[0], "operations": operations(name)} if {
	some name in breaker.resources
	parts := split(name, ".")
}

operations("pods") := ["DELETE", "EVICT"]

operations(name) := ["DELETE"] if name != "pods"

# METADATA
# title: Too many deletes
# description: As many as may be were deleted in this namespace in the last minute.
# labels:
#   id: delete-breaker.open
deny contains {
	"rule": "delete-breaker.open",
	"reason": "TooManyDeletes",
	"message": sprintf("%d %s were deleted in %s in the last %d seconds, %d of them by %s, and %d are allowed. Look whether that was meant, and try again in a minute.", [input.recent.deletes, input.object.resource, place, input.recent.seconds, input.recent.userDeletes, input.request.user.name, breaker.deletes]),
} if {
	input.request.operation in {"DELETE", "EVICT"}
	input.recent.deletes >= breaker.deletes
	not excepted
}

place := concat(" ", ["namespace", input.object.namespace]) if input.object.namespace

place := "the cluster" if not input.object.namespace

excepted if {
	some group in input.request.user.groups
	group in breaker.except
}
