// SPDX-License-Identifier: Apache-2.0

// Package artifact stores bundles in registries in the same form as OPA: as an image with one layer,
// which is the archive.
package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/regatta-sh/regatta/engine/bundle"
)

// Annotations of the manifest. Title is the file name that tools use for a pulled layer.
const (
	Revision = "org.opencontainers.image.revision"
	Sequence = "sh.regatta.bundle.sequence"
	Title    = "org.opencontainers.image.title"

	fileName = "bundle.tar.gz"
	// defaultMaxSize bounds a pull: it is more than any bundle that may be read, however badly it is
	// compressed.
	defaultMaxSize = 16 << 20
)

// Registry is a client of registries.
type Registry struct {
	insecure  bool
	keychain  authn.Keychain
	transport http.RoundTripper
	maxSize   int64
	once      bool
}

// Option changes a Registry.
type Option func(*Registry)

// WithHTTP allows registries without TLS.
func WithHTTP() Option { return func(r *Registry) { r.insecure = true } }

// WithKeychain sets the source of credentials; the configuration of docker or podman if unset.
func WithKeychain(k authn.Keychain) Option { return func(r *Registry) { r.keychain = k } }

// WithTransport sets the transport of requests: those to the registry, and those to the servers of its
// tokens and blobs.
func WithTransport(t http.RoundTripper) Option { return func(r *Registry) { r.transport = t } }

// WithMaxSize sets how many bytes an archive that is pulled may have; 16 MiB if unset.
func WithMaxSize(bytes int64) Option { return func(r *Registry) { r.maxSize = bytes } }

// WithoutRetries is for callers that retry themselves. Otherwise a request that fails temporarily is
// sent three times.
func WithoutRetries() Option { return func(r *Registry) { r.once = true } }

// New makes a Registry.
func New(opts ...Option) *Registry {
	r := &Registry{keychain: authn.DefaultKeychain, transport: remote.DefaultTransport, maxSize: defaultMaxSize}
	for _, o := range opts {
		o(r)
	}
	return r
}

// ReferenceError reports an invalid reference.
type ReferenceError struct{ Err error }

func (e ReferenceError) Error() string { return "reading the reference: " + e.Err.Error() }
func (e ReferenceError) Unwrap() error { return e.Err }

// NoBundleError reports an image without a bundle.
type NoBundleError struct {
	Reference string
	Why       string
}

func (e NoBundleError) Error() string { return "pulling bundle: " + e.Reference + " " + e.Why }

// TooLargeError reports an archive that is larger than the limit.
type TooLargeError struct{ Max int64 }

func (e TooLargeError) Error() string {
	return fmt.Sprintf("pulling bundle: the archive is larger than %d bytes, which is what a bundle has at most", e.Max)
}

// Push writes an archive to a registry and returns the reference that names exactly these bytes. The
// same archive always has the same digest.
func (r *Registry) Push(ctx context.Context, reference string, archive []byte) (string, error) {
	ref, err := r.parseReference(reference)
	if err != nil {
		return "", err
	}
	if _, ok := ref.(name.Digest); ok {
		return "", ReferenceError{errors.New("a digest cannot be chosen; name a tag")}
	}
	b, err := bundle.FromArchive(ref.Context().RepositoryStr(), bytes.NewReader(archive), nil)
	if err != nil {
		return "", err
	}
	image, err := imageOf(b, archive)
	if err != nil {
		return "", fmt.Errorf("making the artifact: %w", err)
	}
	if err := remote.Write(ref, image, r.remoteOptions(ctx)...); err != nil {
		return "", fmt.Errorf("pushing bundle to %s: %w", ref, explainRefusal(ref, err))
	}
	digest, err := image.Digest()
	if err != nil {
		return "", fmt.Errorf("making the artifact: %w", err)
	}
	return ref.Context().Digest(digest.String()).String(), nil
}

func imageOf(b *bundle.Bundle, archive []byte) (v1.Image, error) {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, Annotations: map[string]string{Title: fileName}})
	if err != nil {
		return nil, err
	}
	notes := map[string]string{Title: fileName}
	if b.Manifest.Revision != "" {
		notes[Revision] = b.Manifest.Revision
	}
	if n, ok := b.ManifestSequence(); ok {
		notes[Sequence] = strconv.FormatInt(n, 10)
	}
	return mutate.Annotations(image, notes).(v1.Image), nil
}

// ResolveDigest resolves a reference, and returns the one that names exactly the current bytes.
// Nothing is downloaded, and for a reference with a digest no request is sent.
func (r *Registry) ResolveDigest(ctx context.Context, reference string) (pinned string, err error) {
	ref, err := r.parseReference(reference)
	if err != nil {
		return "", err
	}
	if d, ok := ref.(name.Digest); ok {
		return ref.Context().Digest(d.DigestStr()).String(), nil
	}
	found, err := remote.Head(ref, r.remoteOptions(ctx)...)
	if err != nil {
		return "", fmt.Errorf("resolving the reference of a bundle: %w", err)
	}
	return ref.Context().Digest(found.Digest.String()).String(), nil
}

// PullArchive gets an archive, and the reference that names exactly these bytes. It verifies only that
// the bytes have their digest.
func (r *Registry) PullArchive(ctx context.Context, reference string) (archive []byte, pinned string, err error) {
	ref, err := r.parseReference(reference)
	if err != nil {
		return nil, "", err
	}
	got, err := remote.Get(ref, r.remoteOptions(ctx)...)
	if err != nil {
		return nil, "", fmt.Errorf("pulling bundle from %s: %w", ref, explainRefusal(ref, err))
	}
	if !got.MediaType.IsImage() {
		return nil, "", NoBundleError{ref.String(), "is an index or something else, and a bundle is one image"}
	}
	image, err := got.Image()
	if err != nil {
		return nil, "", fmt.Errorf("pulling bundle: %w", err)
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, "", fmt.Errorf("pulling bundle: %w", err)
	}
	for _, l := range layers {
		media, err := l.MediaType()
		if err != nil || media != types.OCILayer {
			continue
		}
		if archive, err = r.readLayer(l); err != nil {
			return nil, "", err
		}
		return archive, ref.Context().Digest(got.Digest.String()).String(), nil
	}
	return nil, "", NoBundleError{ref.String(), fmt.Sprintf("has no layer %s, which is where OPA keeps bundles", types.OCILayer)}
}

// RefusedError reports that a registry refuses a request, or does not have the artifact. Its cause is a
// *transport.Error.
type RefusedError struct {
	Says string
	Err  error
}

func (e RefusedError) Error() string { return e.Says }
func (e RefusedError) Unwrap() error { return e.Err }

// explainRefusal explains a registry's response to the user who named the reference: the registry's
// own text is about single requests. Other errors stay as they are.
func explainRefusal(ref name.Reference, err error) error {
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return err
	}
	host := ref.Context().RegistryStr()
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		return RefusedError{fmt.Sprintf("the registry wants other credentials, or any (401): docker login %s", host), err}
	case http.StatusForbidden:
		return RefusedError{fmt.Sprintf("the registry does not let these credentials do it (403): docker login %s with others", host), err}
	case http.StatusNotFound:
		return RefusedError{"the registry has no such repository, tag or digest (404)", err}
	}
	return err
}

func (r *Registry) readLayer(l v1.Layer) ([]byte, error) {
	size, err := l.Size()
	if err != nil {
		return nil, fmt.Errorf("pulling bundle: %w", err)
	}
	if size > r.maxSize {
		return nil, TooLargeError{r.maxSize}
	}
	from, err := l.Compressed()
	if err != nil {
		return nil, fmt.Errorf("pulling bundle: %w", err)
	}
	defer from.Close()
	// The registry may send more bytes than it declares.
	text, err := io.ReadAll(io.LimitReader(from, r.maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("pulling bundle: %w", err)
	}
	if int64(len(text)) > r.maxSize {
		return nil, TooLargeError{r.maxSize}
	}
	return text, nil
}

func (r *Registry) parseReference(reference string) (name.Reference, error) {
	var opts []name.Option
	if r.insecure {
		opts = append(opts, name.Insecure)
	}
	ref, err := name.ParseReference(reference, opts...)
	if err != nil {
		return nil, ReferenceError{err}
	}
	return ref, nil
}

func (r *Registry) remoteOptions(ctx context.Context) []remote.Option {
	opts := []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(r.keychain), remote.WithUserAgent("regatta"), remote.WithTransport(r.transport),
	}
	if r.once {
		opts = append(opts, remote.WithRetryBackoff(remote.Backoff{Steps: 1}))
	}
	return opts
}
