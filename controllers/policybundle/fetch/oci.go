// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/regatta-sh/regatta/engine/bundle/artifact"
)

func (f *Fetcher) fetchOCI(ctx context.Context, from OCI, before *Fetched) (*Fetched, error) {
	if strings.Contains(from.Reference, "@") && before != nil && before.Reference != "" {
		pinned, err := artifact.New().ResolveDigest(ctx, from.Reference) // sends no request: the reference has a digest
		if err == nil && pinned == before.Reference {
			return before, nil
		}
	}
	connect, err := newTransport(f.hosts, from.CABundle)
	if err != nil {
		return nil, err
	}
	defer connect.CloseIdleConnections()
	keychains, left, err := f.findKeychains(ctx, from.Reference, from.PullSecrets)
	if err != nil {
		return nil, err
	}
	for _, keys := range keychains {
		var got *Fetched
		if got, err = f.pullArtifact(ctx, from, before, connect, keys); !mayBeRefusedLogin(err) {
			return got, err
		}
	}
	if left > 0 {
		err = fmt.Errorf("%w (%d logins were tried, and %d more of the pull secrets are for it: take out those that are for others)", err, len(keychains), left)
	}
	return nil, err
}

// mayBeRefusedLogin reports whether a registry may have refused a login, so that the next one is tried. Some registries answer not
// found to users who may not read an artifact.
func mayBeRefusedLogin(err error) bool {
	return errors.As(err, &UnauthorizedError{}) || errors.As(err, &ForbiddenError{}) || errors.As(err, &NotFoundError{})
}

// pullArtifact pulls an artifact with one login.
func (f *Fetcher) pullArtifact(ctx context.Context, from OCI, before *Fetched, connect http.RoundTripper, keys authn.Keychain) (*Fetched, error) {
	what := "artifact " + from.Reference
	opts := []artifact.Option{
		artifact.WithTransport(&gate{next: connect, hosts: f.hosts, plain: from.Insecure}),
		artifact.WithKeychain(keys), artifact.WithMaxSize(MaxSize), artifact.WithoutRetries(),
	}
	if from.Insecure {
		opts = append(opts, artifact.WithHTTP())
	}
	r := artifact.New(opts...)
	if before != nil {
		// From registries that do not answer HEAD the whole artifact is pulled.
		if pinned, err := r.ResolveDigest(ctx, from.Reference); err == nil && pinned == before.Reference {
			return before, nil
		}
	}
	archive, pinned, err := r.PullArchive(ctx, from.Reference)
	var reference artifact.ReferenceError
	if errors.As(err, &reference) {
		return nil, SourceError{"oci.reference", reference.Err}
	}
	if err != nil {
		return nil, readableError(ctx, what, err)
	}
	got, err := newFetched(what, archive)
	if err != nil {
		return nil, err
	}
	got.Reference = pinned
	return got, nil
}
