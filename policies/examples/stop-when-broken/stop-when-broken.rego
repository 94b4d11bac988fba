# METADATA
# title: Stop when broken
# description: |
#   A rollout whose new pods do not become available goes no further, whatever
#   maxUnavailable would still allow.
package extend.rollout.stop_when_broken

import future.keywords.not

# Edit this: so many pods of the new revision may be on their way at a time.
broken := 3

# METADATA
# title: Too many new pods are not available
# description: Pods that are only starting count as well, so let the number be more than one round has.
# labels:
#   id: stop-when-broken.new-pods
hold contains {
	"rule": "stop-when-broken.new-pods",
	"reason": "NewPodsNotAvailable",
	"message": sprintf("%s %s/%s has %d or more pods of revision %s that are not available, so no more are updated.", [input.workload.kind, input.workload.namespace, input.workload.name, broken, input.revisions.update]),
} if {
	input.update > 0
	input.counts.updated - input.counts.updatedAvailable >= broken
}
