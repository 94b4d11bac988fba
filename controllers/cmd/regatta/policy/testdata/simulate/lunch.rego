# METADATA
# title: No pod goes at lunch
# description: Pods of the shop stay from 12:00 to 13:00 UTC, regardless of which user deletes or changes them.
package extend.protection.lunch

guard contains {"group": "", "resource": "pods", "operations": ["DELETE", "UPDATE"], "namespaces": ["shop"]}

# METADATA
# title: Lunch
# labels:
#   id: lunch.closed
deny contains {
	"rule": "lunch.closed",
	"reason": "Lunch",
	"until": lunch_ends,
	"message": sprintf("Pod %s stays until lunch is over.", [input.object.name]),
} if {
	input.object.resource == "pods"
	time.clock(input.now)[0] == 12
}

lunch_ends := time.format([input.now + (60 * (60 - time.clock(input.now)[1]) - time.clock(input.now)[2]) * 1000000000, "UTC", "RFC3339"])
