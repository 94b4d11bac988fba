// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/regatta-sh/regatta/engine/bundle/artifact"
)

func (f *Fetcher) oci(ctx context.Context, from OCI, before *Fetched) (*Fetched, error) {
	what := "artifact " + from.Reference
	if strings.Contains(from.Reference, "@") && before != nil && before.Reference != "" {
		pinned, err := artifact.New().Resolve(ctx, from.Reference) // sends no request: the reference has a digest
		if err == nil && pinned == before.Reference {
			return before, nil
		}
	}
	connect, err := transport(f.hosts, from.CABundle)
	if err != nil {
		return nil, err
	}
	defer connect.CloseIdleConnections()
	keys, err := f.keychain(ctx, from.PullSecrets)
	if err != nil {
		return nil, err
	}
	opts := []artifact.Option{
		artifact.WithTransport(&gate{next: connect, hosts: f.hosts, plain: from.Insecure}),
		artifact.WithKeychain(keys), artifact.WithMaxSize(MaxSize), artifact.WithoutRetries(),
	}
	if from.Insecure {
		opts = append(opts, artifact.WithHTTP())
	}
	r := artifact.New(opts...)
	if before != nil {
		// Registries that do not answer HEAD are asked for all of it.
		if pinned, err := r.Resolve(ctx, from.Reference); err == nil && pinned == before.Reference {
			return before, nil
		}
	}
	archive, pinned, err := r.Pull(ctx, from.Reference)
	var reference artifact.ReferenceError
	if errors.As(err, &reference) {
		return nil, SourceError{"oci.reference", reference.Err}
	}
	if err != nil {
		return nil, explain(ctx, what, err)
	}
	got, err := found(what, archive)
	if err != nil {
		return nil, err
	}
	got.Reference = pinned
	return got, nil
}

// anonymous is a keychain for who named no secret. The manager's own machine may
// have credentials, which are not for bundles.
type anonymous struct{}

func (anonymous) Resolve(authn.Resource) (authn.Authenticator, error) { return authn.Anonymous, nil }
