package override.rollout

import data.rollout

default rank := {"keys": [], "descending": [], "lead": [], "holds": []}

# The oldest pod goes first, whatever the strategy says.
rank := object.union(rollout.rank, {"keys": [[pod.created] | some pod in input.pods], "descending": []})
