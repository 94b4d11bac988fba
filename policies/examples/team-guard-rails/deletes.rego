# METADATA
# title: Guard rails for deletes of a team
# description: No user deletes workloads of the namespace at night.
package extend.protection.team_guard_rails

import future.keywords.not

# Edit this. The night may begin on one day and end on the next.
night := {"from": "20:00", "to": "07:00", "timezone": "Europe/Berlin"}

# Controllers, which scale and clean up.
except := ["system:serviceaccounts:kube-system", "system:serviceaccounts:kruise-system"]

# Selects the requests that the API server asks the manager about, in the team's namespace only.
guard contains {"group": group, "resource": resource, "operations": ["DELETE"]} if {
	some [group, resource] in [["apps", "deployments"], ["apps", "statefulsets"], ["apps.kruise.io", "clonesets"], ["", "persistentvolumeclaims"]]
}

# METADATA
# title: At night
# description: By the clock of the team's time zone.
# labels:
#   id: team-guard-rails.night
deny contains {
	"rule": "team-guard-rails.night",
	"reason": "NoDeletesAtNight",
	"message": sprintf("%s %s/%s is not deleted between %s and %s (%s). Try again in the morning.", [input.object.kind, input.object.namespace, input.object.name, night.from, night.to, night.timezone]),
} if {
	input.request.operation == "DELETE"
	input.object.kind != "Pod"
	dark
	not excepted
}

clock := time.format([input.now, night.timezone, "15:04"])

# One of the two is enough, since midnight is between them.
dark if clock >= night.from

dark if clock < night.to

excepted if {
	some group in input.request.user.groups
	group in except
}
