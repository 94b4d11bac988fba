package extend.injection.sidecar_for_some_images_test

import data.extend.injection.sidecar_for_some_images

skipped(images) := {wish.set | some wish in wishes} if {
	wishes := sidecar_for_some_images.skip with input.pod.containers as [{"name": "c", "image": image} | some image in images]
}

test_pods_of_the_teams_have_it if {
	skipped(["registry.example/shop/web:1"]) == set()
	skipped(["nginx:1.20", "registry.example/search/index:2"]) == set()
}

test_others_do_without if {
	every images in [[], ["nginx:1.20"], ["other.example/registry.example/shop/web:1"]] {
		skipped(images) == {"profiler"}
	}
}
