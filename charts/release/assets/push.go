// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Push writes the image and the chart to a registry, by their digests and then by their tags. The chart comes last, so that whoever sees
// it finds its image. A tag that is there with something else stays: others have installed that.
func (r *Release) Push(ctx context.Context, registry string, report func(string), options ...remote.Option) error {
	imageTag, err := name.NewTag(path.Join(registry, imageRepository) + ":" + bareVersion(r.Version))
	if err != nil {
		return fmt.Errorf("naming the image: %w", err)
	}
	chartTag, err := name.NewTag(path.Join(registry, chartRepository, r.Chart.Name) + ":" + r.Chart.Version)
	if err != nil {
		return fmt.Errorf("naming the chart: %w", err)
	}
	chart, err := r.Chart.Artifact()
	if err != nil {
		return err
	}
	for _, one := range []struct {
		tag  name.Tag
		what interface{ Digest() (v1.Hash, error) }
	}{{imageTag, r.Image.Index}, {chartTag, chart}} {
		digest, err := one.what.Digest()
		if err != nil {
			return fmt.Errorf("finding the digest for %s: %w", one.tag, err)
		}
		if err := requireUnused(ctx, one.tag, digest, options); err != nil {
			return err
		}
	}
	report("Pushing " + imageTag.String())
	if _, err := r.Image.Push(ctx, imageTag, options...); err != nil {
		return err
	}
	report("Pushing " + chartTag.String())
	_, err = r.Chart.Push(ctx, chartTag, options...)
	return err
}

// requireUnused refuses a tag that names something else already.
func requireUnused(ctx context.Context, tag name.Tag, digest v1.Hash, options []remote.Option) error {
	there, err := remote.Head(tag, append(options[:len(options):len(options)], remote.WithContext(ctx))...)
	var answer *transport.Error
	switch {
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		return nil
	case err != nil:
		return fmt.Errorf("asking for %s: %w", tag, err)
	case there.Digest != digest:
		return fmt.Errorf("%s is there already, with digest %s, and not %s: a release never changes; choose another version", tag, there.Digest, digest)
	}
	return nil
}
