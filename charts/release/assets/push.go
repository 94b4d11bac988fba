// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// parseRegistry are where a registry has the image and the chart.
func parseRegistry(registry string) (images, charts name.Repository, err error) {
	for of, into := range map[string]*name.Repository{imageRepository: &images, chartRepository: &charts} {
		if *into, err = name.NewRepository(strings.TrimSuffix(registry, "/")+"/"+of, name.StrictValidation); err != nil {
			return images, charts, fmt.Errorf("the registry is %q, want a host and maybe a path, such as localhost:5000: %w", registry, err)
		}
	}
	return images, charts, nil
}

// CheckRegistry returns an error for a registry that does not permit a push: callers check it before anything is built.
func CheckRegistry(registry string, keychain authn.Keychain) error {
	images, charts, err := parseRegistry(registry)
	if err != nil {
		return err
	}
	for _, one := range []name.Repository{images, charts} {
		if err := remote.CheckPushPermission(one.Tag("latest"), keychain, remote.DefaultTransport); err != nil {
			return fmt.Errorf("asking to push to %s: %w", one, err)
		}
	}
	return nil
}

// PushRelease writes the image and the chart to a registry, by their digests and then by their tags. The chart comes last, so that a client that sees
// it finds its image. A tag that names something else already is not moved: users have installed that.
func (r *Release) PushRelease(ctx context.Context, registry string, report func(string), options ...remote.Option) error {
	images, charts, err := parseRegistry(registry)
	if err != nil {
		return err
	}
	imageTag, chartTag := images.Tag(bareVersion(r.Version)), charts.Tag(r.Chart.Version)
	chart, err := r.Chart.BuildArtifact()
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
	_, err = r.Chart.PushChart(ctx, chartTag, options...)
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
