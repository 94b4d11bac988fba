# METADATA
# title: The image first
# description: |
#   A pod is not updated before its node has the images that are pulled ahead for it, so
#   that its containers are down for no longer than a restart takes.
package extend.rollout.image_on_node_first

import future.keywords.not

# METADATA
# title: An image is on its way
# description: The node pulls it, waits for its turn, or was not asked for it yet.
# labels:
#   id: image-on-node-first.pulling
hold contains {
	"rule": "image-on-node-first.pulling",
	"reason": "ImageNotOnNode",
	"message": sprintf("Node %s does not have image %s yet, so pod %s is not updated until it is pulled.", [pod.node, pull.image, pod.name]),
	"pod": pod.name,
} if {
	some pod in input.pods
	not pod.updated # those are only moved back, which heals
	some pull in pod.pulls
	pull.phase != "Failed"
}

# METADATA
# title: An image that cannot be pulled
# description: The node gave up; a pod that needs the image would not start either.
# labels:
#   id: image-on-node-first.failed
hold contains {
	"rule": "image-on-node-first.failed",
	"reason": "ImagePullFailed",
	"message": sprintf("Node %s could not pull image %s, so pod %s is not updated while the ImagePullJob is there.", [pod.node, pull.image, pod.name]),
	"pod": pod.name,
} if {
	some pod in input.pods
	not pod.updated
	some pull in pod.pulls
	pull.phase == "Failed"
}
