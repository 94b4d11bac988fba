// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Tags with a meaning, for tests of what happens when images are hard to get.
const (
	// missingTag begins the tags for which there is no stand-in.
	missingTag = "missing"
	// slowTag begins the tags whose stand-ins are served late: slow-10s.
	slowTag = "slow-"
)

// prepare makes the stand-in for a manifest that is asked for by tag and not
// there, so that the registry behind finds it.
func (r *Registry) prepare(request *http.Request, repository, reference string) error {
	if r.standIn == nil || strings.HasPrefix(reference, "sha256:") || strings.HasPrefix(reference, missingTag) {
		return nil
	}
	if !slowly(request.Context(), reference) {
		return nil
	}
	r.making.Lock()
	defer r.making.Unlock()
	head := httptest.NewRequest(http.MethodHead, request.URL.Path, nil)
	recorder := httptest.NewRecorder()
	r.inner.ServeHTTP(recorder, head)
	if recorder.Code != http.StatusNotFound {
		return nil
	}
	image, err := r.standIn.ImageID(repository, reference)
	if err != nil {
		return fmt.Errorf("making a stand-in for %s:%s: %w", repository, reference, err)
	}
	return r.put(request.Context(), repository, reference, image)
}

// slowly waits as long as the tag says, and returns false if the client has
// gone meanwhile.
func slowly(ctx context.Context, tag string) bool {
	wanted, ok := strings.CutPrefix(tag, slowTag)
	if !ok {
		return true
	}
	delay, err := time.ParseDuration(wanted)
	if err != nil {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(delay):
		return true
	}
}

// put stores an image that the StandIn made.
func (r *Registry) put(ctx context.Context, repository, tag string, image v1.Image) error {
	store, ok := r.blobs.(ggcr.BlobPutHandler)
	if !ok {
		return fmt.Errorf("the blob store of the registry takes no blobs")
	}
	layers, err := image.Layers()
	if err != nil {
		return fmt.Errorf("listing the layers: %w", err)
	}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return fmt.Errorf("hashing a layer: %w", err)
		}
		content, err := layer.Compressed()
		if err != nil {
			return fmt.Errorf("packing a layer: %w", err)
		}
		if err := store.Put(ctx, repository, digest, content); err != nil {
			return fmt.Errorf("storing a layer: %w", err)
		}
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return fmt.Errorf("encoding the configuration: %w", err)
	}
	digest, err := image.ConfigName()
	if err != nil {
		return fmt.Errorf("hashing the configuration: %w", err)
	}
	if err := store.Put(ctx, repository, digest, io.NopCloser(bytes.NewReader(config))); err != nil {
		return fmt.Errorf("storing the configuration: %w", err)
	}
	return r.putManifest(repository, tag, image)
}

func (r *Registry) putManifest(repository, tag string, image v1.Image) error {
	manifest, err := image.RawManifest()
	if err != nil {
		return fmt.Errorf("encoding the manifest: %w", err)
	}
	mediaType, err := image.MediaType()
	if err != nil {
		return fmt.Errorf("asking for the media type: %w", err)
	}
	one := entry{Method: http.MethodPut, Repository: repository, Reference: tag, ContentType: string(mediaType), Body: manifest}
	if status := r.replay(one); status >= 300 {
		return fmt.Errorf("storing the manifest: the registry answered %d", status)
	}
	// Not journalled: a stand-in is made again, the same, when it is asked for.
	return nil
}
