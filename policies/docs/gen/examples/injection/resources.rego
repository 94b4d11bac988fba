package override.injection

import data.injection

default resources := {"limits": {}, "requests": {}, "refuse": [{"reason": "NoFacts", "message": "The facts are not complete, so the pod is not created."}]}

# No container of a SidecarSet gets more than one core.
resources := object.union(injection.resources, {"limits": {"cpu": 1000}}) if {
	injection.resources.limits.cpu > 1000
} else := injection.resources
