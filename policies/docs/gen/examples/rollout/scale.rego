package override.rollout

import data.rollout

default scale := {"create": 0, "createCurrent": 0, "delete": 0, "deleteCurrent": 0, "keep": [], "planned": "None", "keys": [], "then": [], "descending": [], "holds": []}

# Never more than five pods are deleted at a time.
scale := object.union(rollout.scale, {
	"delete": min([5, rollout.scale.delete]),
	"deleteCurrent": min([5, rollout.scale.deleteCurrent]),
})
