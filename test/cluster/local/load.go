// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/regatta-sh/regatta/test/cluster/images"
)

// Load makes an image of statically linked programs and pushes it, so that
// pods can use it under the given name. It returns the image's digest.
//
// The name may have a registry in front, which makes no difference: the nodes
// ask this registry for the images of all others.
func (c *Cluster) Load(ctx context.Context, image string, programs []string, options images.Options) (string, error) {
	wanted, err := name.NewTag(image)
	if err != nil {
		return "", fmt.Errorf("reading the image name %q: %w", image, err)
	}
	built, err := images.FromPrograms(programs, options)
	if err != nil {
		return "", fmt.Errorf("making the image %s: %w", image, err)
	}
	target, err := name.NewTag(fmt.Sprintf("%s/%s:%s", c.State.RegistryAddress(), wanted.RepositoryStr(), wanted.TagStr()), name.Insecure)
	if err != nil {
		return "", fmt.Errorf("reading the image name %q: %w", image, err)
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
