package override.rollout

default rows := {"order": []}

# Pods of zone a go, in the order of the ranks; all others are held.
rows := {"order": [pod.name | some pod in input.rows; pod.zone == "a"]}
