// SPDX-License-Identifier: Apache-2.0

// Package tags finds images in NodeImages, which list images by name and tag.
package tags

import (
	"slices"

	"github.com/distribution/reference"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// Image is an image as NodeImages name it.
type Image struct {
	// Name as users write it, such as nginx.
	Name string
	// Tag of the image, or its digest.
	Tag string
	// Registry is the host of the image, such as docker.io.
	Registry string
}

// ParseImage splits the name of an image: nginx:1.28 is the tag 1.28 of nginx, a digest counts as a
// tag, and the tag is latest if there is neither. It fails if the text is no image reference.
func ParseImage(text string) (Image, error) {
	named, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return Image{}, err
	}
	out := Image{Name: reference.FamiliarName(named), Tag: "latest", Registry: reference.Domain(named)}
	switch r := named.(type) {
	case reference.Digested:
		out.Tag = r.Digest().String()
	case reference.Tagged:
		out.Tag = r.Tag()
	}
	return out, nil
}

// FindSpec returns the spec of a tag, nil if the image has no such tag.
func FindSpec(spec kruise.ImageSpec, tag string) *kruise.ImageTagSpec {
	if i := slices.IndexFunc(spec.Tags, func(t kruise.ImageTagSpec) bool { return t.Tag == tag }); i >= 0 {
		return &spec.Tags[i]
	}
	return nil
}

// Status returns what a node reports about this version of a tag, nil if nothing.
func Status(node *kruise.NodeImage, name string, tag *kruise.ImageTagSpec) *kruise.ImageTagStatus {
	tags := node.Status.ImageStatuses[name].Tags
	for i := range tags {
		if tags[i].Tag == tag.Tag && tags[i].Version == tag.Version {
			return &tags[i]
		}
	}
	return nil
}

// PullPhase returns the phase of an image's pull on a node; "" before the pull has begun.
func PullPhase(node *kruise.NodeImage, i Image) kruise.ImagePullPhase {
	tag := FindSpec(node.Spec.Images[i.Name], i.Tag)
	if tag == nil {
		return ""
	}
	if s := Status(node, i.Name, tag); s != nil {
		return s.Phase
	}
	return ""
}
