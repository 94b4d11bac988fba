// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// sameImage reports whether a container's status reports the image in the
// spec. Runtimes report full names: docker.io/library/nginx:latest for nginx.
func sameImage(spec string, st *corev1.ContainerStatus) bool {
	if _, digest, ok := strings.Cut(spec, "@"); ok {
		return strings.HasSuffix(st.ImageID, "@"+digest) || strings.HasSuffix(st.Image, "@"+digest)
	}
	return spec != "" && normalizeImage(spec) == normalizeImage(st.Image)
}

// normalizeImage returns the full name of an image, with registry, path and tag.
func normalizeImage(image string) string {
	name, tag := image, ":latest"
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		name, tag = image[:i], image[i:]
	}
	registry, path, ok := strings.Cut(name, "/")
	if !ok || !(strings.ContainsAny(registry, ".:") || registry == "localhost") {
		registry, path = "docker.io", name
	}
	if registry == "index.docker.io" {
		registry = "docker.io"
	}
	if registry == "docker.io" && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	return registry + "/" + path + tag
}
