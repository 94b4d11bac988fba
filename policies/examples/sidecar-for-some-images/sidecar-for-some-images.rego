# METADATA
# title: A sidecar only for some images
# description: The SidecarSet profiler is given only to pods that run an image of a list.
package extend.injection.sidecar_for_some_images

import future.keywords.not

# Edit these.
set_name := "profiler"

images := ["registry.example/shop/", "registry.example/search/"]

# METADATA
# title: None of the images
# description: No container of the pod runs one of them. Init containers do not count.
# labels:
#   id: sidecar-for-some-images.other
skip contains {
	"rule": "sidecar-for-some-images.other",
	"set": set_name,
	"reason": "OtherImages",
	"message": sprintf("SidecarSet %s is for pods with an image that begins with %s.", [set_name, concat(" or ", images)]),
} if {
	not profiled
}

profiled if {
	some container in input.pod.containers
	some prefix in images
	startswith(container.image, prefix)
}
