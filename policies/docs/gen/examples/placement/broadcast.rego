package override.placement

import data.placement

default broadcast := {"nodes": [], "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so no pod is created."}], "denials": []}

# One node at a time, whatever parallelism says.
broadcast := object.union(placement.broadcast, {"nodes": array.slice(placement.broadcast.nodes, 0, 1 - input.counts.active)})
