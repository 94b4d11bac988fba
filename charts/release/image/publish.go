// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Types of what refers to an image.
const (
	SBOMType       types.MediaType = "application/spdx+json"
	ProvenanceType types.MediaType = "application/vnd.in-toto+json"
)

// Push writes an image to a registry, with the SBOM of each platform and the provenance of all of them as referrers. The tag comes last,
// so that it never names an image whose parts are missing.
func (b *Built) Push(ctx context.Context, tag name.Tag, options ...remote.Option) (v1.Hash, error) {
	options = append(options, remote.WithContext(ctx))
	digest, err := b.Index.Digest()
	if err != nil {
		return v1.Hash{}, fmt.Errorf("finding the digest of the image: %w", err)
	}
	if err := remote.WriteIndex(tag.Context().Digest(digest.String()), b.Index, options...); err != nil {
		return v1.Hash{}, fmt.Errorf("pushing the image to %s: %w", tag.Context(), err)
	}
	for _, p := range b.Platforms {
		if err := attachDocument(tag.Context(), p.Image, SBOMType, p.SBOM, options); err != nil {
			return v1.Hash{}, fmt.Errorf("pushing the SBOM for %s to %s: %w", p.String(), tag.Context(), err)
		}
	}
	provenance, err := b.BuildProvenance(tag.Context().Name())
	if err != nil {
		return v1.Hash{}, fmt.Errorf("describing the build: %w", err)
	}
	if err := attachDocument(tag.Context(), b.Index, ProvenanceType, provenance, options); err != nil {
		return v1.Hash{}, fmt.Errorf("pushing the provenance to %s: %w", tag.Context(), err)
	}
	if err := remote.Tag(tag, b.Index, options...); err != nil {
		return v1.Hash{}, fmt.Errorf("tagging the image as %s: %w", tag, err)
	}
	return digest, nil
}

// attachDocument writes a document that refers to an image or an index.
func attachDocument(to name.Repository, subject partial.Describable, kind types.MediaType, document []byte, options []remote.Option) error {
	descriptor, err := partial.Descriptor(subject)
	if err != nil {
		return fmt.Errorf("describing what it refers to: %w", err)
	}
	descriptor.Platform = nil
	artifact := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), kind)
	artifact, err = mutate.AppendLayers(artifact, static.NewLayer(document, kind))
	if err != nil {
		return fmt.Errorf("adding the document: %w", err)
	}
	image, ok := mutate.Subject(artifact, *descriptor).(v1.Image)
	if !ok {
		return errors.New("setting what it refers to made something else of it")
	}
	digest, err := image.Digest()
	if err != nil {
		return fmt.Errorf("finding its digest: %w", err)
	}
	return remote.Write(to.Digest(digest.String()), image, options...)
}

// WriteArchive writes the image of one platform into a file that docker load, kind load image-archive, minikube image load,
// k3d image import and ctr images import read. The file is written as a whole, or not at all.
func (b *Built) WriteArchive(file string, tag name.Tag) error {
	if len(b.Platforms) != 1 {
		return fmt.Errorf("an archive has an image of one platform, and %d are asked for", len(b.Platforms))
	}
	partly := file + ".partly"
	if err := tarball.WriteToFile(partly, tag, b.Platforms[0].Image); err != nil {
		return errors.Join(fmt.Errorf("writing the archive: %w", err), removeIfThere(partly))
	}
	if err := os.Rename(partly, file); err != nil {
		return errors.Join(fmt.Errorf("writing the archive: %w", err), removeIfThere(partly))
	}
	return nil
}

func removeIfThere(file string) error {
	if err := os.Remove(file); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
