package override.rollout

import data.rollout

default plan := {"limit": 0, "maxUnavailable": 0, "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so nothing new is started."}], "scatter": []}

# Never more than ten pods at a time, in any workload of the cluster.
plan := object.union(rollout.plan, {"limit": min([10, rollout.plan.limit])})
