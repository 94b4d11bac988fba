// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"go.yaml.in/yaml/v3"
)

// Types that Helm looks for in a registry.
const (
	configType  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	contentType types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// WriteIndex writes the index.yaml that helm repo add asks for, of a repository that has this package beside it.
func (p *Package) WriteIndex() ([]byte, error) {
	entry := maps.Clone(p.Metadata)
	sum := sha256.Sum256(p.Content)
	created := p.Created.Format(time.RFC3339)
	entry["created"], entry["digest"], entry["urls"] = created, hex.EncodeToString(sum[:]), []string{p.FileName()}
	out, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "generated": created, "entries": map[string]any{p.Name: []any{entry}}})
	if err != nil {
		return nil, fmt.Errorf("writing the index of charts: %w", err)
	}
	return out, nil
}

// BuildArtifact is the chart as registries have it.
func (p *Package) BuildArtifact() (v1.Image, error) {
	config, err := json.Marshal(p.Metadata)
	if err != nil {
		return nil, fmt.Errorf("writing what the chart says of itself: %w", err)
	}
	a := &artifact{config: config, content: static.NewLayer(p.Content, contentType)}
	layer, err := partial.Descriptor(a.content)
	if err != nil {
		return nil, fmt.Errorf("describing the archive of the chart: %w", err)
	}
	digest, size, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, fmt.Errorf("describing what the chart says of itself: %w", err)
	}
	annotations := map[string]string{
		"org.opencontainers.image.title": p.Name, "org.opencontainers.image.version": p.Version, "org.opencontainers.image.created": p.Created.Format(time.RFC3339),
	}
	for annotation, key := range map[string]string{"org.opencontainers.image.description": "description", "org.opencontainers.image.url": "home", "org.opencontainers.image.source": "home"} {
		if text, ok := p.Metadata[key].(string); ok {
			annotations[annotation] = text
		}
	}
	a.manifest, err = json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: annotations,
		Config: v1.Descriptor{MediaType: configType, Size: size, Digest: digest}, Layers: []v1.Descriptor{*layer},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the manifest of the chart: %w", err)
	}
	return partial.CompressedToImage(a)
}

// PushChart writes the chart to a registry. The tag comes last.
func (p *Package) PushChart(ctx context.Context, tag name.Tag, options ...remote.Option) (v1.Hash, error) {
	options = append(options, remote.WithContext(ctx))
	image, err := p.BuildArtifact()
	if err != nil {
		return v1.Hash{}, err
	}
	digest, err := image.Digest()
	if err != nil {
		return v1.Hash{}, fmt.Errorf("finding the digest of the chart: %w", err)
	}
	if err := remote.Write(tag.Context().Digest(digest.String()), image, options...); err != nil {
		return v1.Hash{}, fmt.Errorf("pushing the chart to %s: %w", tag.Context(), err)
	}
	if err := remote.Tag(tag, image, options...); err != nil {
		return v1.Hash{}, fmt.Errorf("tagging the chart as %s: %w", tag, err)
	}
	return digest, nil
}

// artifact is an image whose configuration is what the chart says of itself.
type artifact struct {
	manifest, config []byte
	content          v1.Layer
}

// RawConfigFile implements partial.CompressedImageCore.
func (a *artifact) RawConfigFile() ([]byte, error) { return a.config, nil }

// RawManifest implements partial.CompressedImageCore.
func (a *artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

// MediaType implements partial.CompressedImageCore.
func (a *artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// LayerByDigest implements partial.CompressedImageCore.
func (a *artifact) LayerByDigest(of v1.Hash) (partial.CompressedLayer, error) {
	config, err := partial.ConfigLayer(a)
	if err != nil {
		return nil, err
	}
	for _, one := range []v1.Layer{a.content, config} {
		if digest, err := one.Digest(); err != nil || digest == of {
			return one, err
		}
	}
	return nil, fmt.Errorf("the chart has no part %s", of)
}
