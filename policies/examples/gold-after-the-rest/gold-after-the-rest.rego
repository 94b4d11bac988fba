# METADATA
# title: Gold after the rest
# description: |
#   Pods with the label tier=gold are held until all others are updated and what is
#   updated is available. A hold cannot say so, since rollout/rank sees each pod by
#   itself; rollout/rows sees all candidates, and costs more for it.
package override.rollout

import future.keywords.not

# METADATA
# title: The candidates that may go
# description: Those that are not named are held. The order is the one that rank gave.
# entrypoint: true
# labels:
#   id: gold-after-the-rest.rows
default rows := {"order": []}

# METADATA
# title: The rest
# description: While there are candidates that are not gold, they alone may go.
# labels:
#   id: gold-after-the-rest.rest
rows := {"order": rest} if {
	input.plan.update >= 0
	count(rest) > 0
}

# METADATA
# title: Gold
# description: Nothing but gold is left, and every updated pod is available.
# labels:
#   id: gold-after-the-rest.gold
rows := {"order": all} if {
	input.plan.update >= 0
	count(rest) == 0
	input.plan.counts.updatedAvailable == input.plan.counts.updated
}

# METADATA
# title: Back
# description: A rollout back is not held, because it heals.
# labels:
#   id: gold-after-the-rest.back
rows := {"order": all} if input.plan.update < 0

all := [pod.name | some pod in input.rows]

rest := [pod.name |
	some pod in input.rows
	not pod.labels.tier == "gold"
]
