package override.placement

import data.placement

default ephemeral := {"pods": [], "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so no container is added."}], "denials": []}

# One pod at a time, whatever parallelism says.
ephemeral := object.union(placement.ephemeral, {"pods": array.slice(placement.ephemeral.pods, 0, 1 - input.counts.active)})
