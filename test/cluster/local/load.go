// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/regatta-sh/regatta/test/cluster/images"
)

// Load makes an image of statically linked programs and pushes it, so that
// pods can use it under the given name. It returns the image's digest.
//
// The name may have a registry in front, which makes no difference: the nodes
// ask this registry for the images of all others.
func (c *Cluster) Load(ctx context.Context, image string, programs []string, options images.Options) (string, error) {
	built, err := images.FromPrograms(programs, options)
	if err != nil {
		return "", fmt.Errorf("making the image %s: %w", image, err)
	}
	return c.Push(ctx, image, built)
}

// Push pushes an image, so that pods can use it under the given name, and returns its digest.
func (c *Cluster) Push(ctx context.Context, image string, built v1.Image) (string, error) {
	target, err := c.tag(image)
	if err != nil {
		return "", err
	}
	if err := remote.Write(target, built, remote.WithContext(ctx)); err != nil {
		return "", fmt.Errorf("pushing the image %s: %w", image, err)
	}
	digest, err := built.Digest()
	if err != nil {
		return "", fmt.Errorf("hashing the image %s: %w", image, err)
	}
	return digest.String(), nil
}

// Tag has a tag, such as nginx:v1, point to the manifest of another image, such as
// nginx:v2 or nginx@sha256:..., and returns its digest. What is pushed and stand-ins
// can both be pointed to, and the tag keeps what it points to until the next Tag or
// Load of it.
func (c *Cluster) Tag(ctx context.Context, tag, image string) (string, error) {
	from, err := c.reference(image)
	if err != nil {
		return "", err
	}
	to, err := c.tag(tag)
	if err != nil {
		return "", err
	}
	manifest, err := remote.Get(from, remote.WithContext(ctx))
	if err != nil {
		return "", fmt.Errorf("reading the manifest of %s: %w", image, err)
	}
	if err := remote.Put(to, manifest, remote.WithContext(ctx)); err != nil {
		return "", fmt.Errorf("tagging %s as %s: %w", image, tag, err)
	}
	return manifest.Digest.String(), nil
}

// reference is where the cluster's registry has an image.
func (c *Cluster) reference(image string) (name.Reference, error) {
	digest, err := name.NewDigest(image)
	if err != nil {
		return c.tag(image)
	}
	return c.repository(digest).Digest(digest.DigestStr()), nil
}

func (c *Cluster) tag(image string) (name.Tag, error) {
	tag, err := name.NewTag(image)
	if err != nil {
		return name.Tag{}, fmt.Errorf("reading the image name %q: %w", image, err)
	}
	return c.repository(tag).Tag(tag.TagStr()), nil
}

// repository is that of a name in the cluster's registry.
func (c *Cluster) repository(of name.Reference) name.Repository {
	out := of.Context()
	out.Registry, _ = name.NewRegistry(c.State.RegistryAddress(), name.Insecure) // an address is a valid name
	return out
}
