// SPDX-License-Identifier: Apache-2.0

// Package fetch gets bundles from where users publish them. It trusts no server: responses are
// bounded, and errors contain nothing from a response or a secret.
package fetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	registry "github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
	"github.com/regatta-sh/regatta/engine/bundle/artifact"
)

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

// MaxSize is how many bytes an archive, and every single response of a server, may have. A fetched
// archive is stored in an object of etcd, which may have 1.5 MiB; base64 adds a third to the archive,
// and the object has other fields.
const MaxSize = 1 << 20

// defaultTimeout is how long a fetch may take, with all its requests.
const defaultTimeout = 30 * time.Second

// Fetcher fetches bundles. It keeps nothing between two calls.
type Fetcher struct {
	reader  client.Reader
	hosts   *Hosts
	timeout time.Duration
	account types.NamespacedName
}

// Option changes a Fetcher.
type Option func(*Fetcher)

// WithHosts limits which hosts requests may go to, as is required for bundles of tenants. Hosts after
// redirects, and those of a registry's tokens and blobs, are limited too. A connection to an address
// inside the network is allowed only for a host that is listed itself, not by its domain. Proxies are
// not used then.
func WithHosts(h Hosts) Option { return func(f *Fetcher) { f.hosts = &h } }

// WithTimeout sets how long a fetch may take; 30 s if unset.
func WithTimeout(d time.Duration) Option { return func(f *Fetcher) { f.timeout = d } }

// WithServiceAccount sets the service account in errors that say how to allow it to read secrets;
// kruise-system/kruise-manager if unset.
func WithServiceAccount(n types.NamespacedName) Option { return func(f *Fetcher) { f.account = n } }

// New makes a Fetcher that may send requests to every host unless an option limits them. The reader
// must not be a cache: secrets are read by name, and not listed.
func New(reader client.Reader, opts ...Option) *Fetcher {
	f := &Fetcher{reader: reader, timeout: defaultTimeout, account: types.NamespacedName{Namespace: "kruise-system", Name: "kruise-manager"}}
	for _, o := range opts {
		o(f)
	}
	return f
}

// FetchBundle gets a bundle. before is the result of the last call, or nil: the same pointer is
// returned if nothing changed, and usually nothing is downloaded then. IsPermanent classifies the
// errors.
func (f *Fetcher) FetchBundle(ctx context.Context, s Source, before *Fetched) (*Fetched, error) {
	if err := s.validateSource(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("it took longer than %s", f.timeout))
	defer cancel()
	var got *Fetched
	var err error
	switch {
	case s.ConfigMap != nil:
		got, err = f.configMap(ctx, *s.ConfigMap, before)
	case s.OCI != nil:
		got, err = f.fetchOCI(ctx, *s.OCI, before)
	case s.HTTP != nil:
		got, err = f.fetchHTTP(ctx, *s.HTTP, before)
	default:
		got, err = PackInline(s.Files)
	}
	if err != nil {
		return nil, fmt.Errorf("fetching bundle: %w", err)
	}
	if before != nil && got.Digest == before.Digest && got.Reference == before.Reference && got.ETag == before.ETag && got.origin == before.origin {
		return before, nil
	}
	return got, nil
}

// newFetched checks an archive as it was received.
func newFetched(what string, archive []byte) (*Fetched, error) {
	if len(archive) > MaxSize {
		return nil, TooLargeError{what}
	}
	if !bytes.HasPrefix(archive, []byte{0x1f, 0x8b}) { // RFC 1952, 2.3.1
		return nil, ContentError{what, "is no archive (bundle.tar.gz) as opa build and regatta policy build make it"}
	}
	return &Fetched{Archive: archive, Digest: bundlerevision.ArchiveDigest(archive)}, nil
}

// readableError turns the error of a request into one that users may read: without contents of the
// response, and without the query of a URL.
func readableError(ctx context.Context, what string, err error) error {
	var host HostError
	var noBundle artifact.NoBundleError
	var status *registry.Error
	switch {
	case errors.As(err, &host):
		return host
	case errors.As(err, &noBundle):
		return ContentError{what, noBundle.Why}
	case errors.As(err, new(artifact.TooLargeError)), errors.As(err, new(*http.MaxBytesError)):
		return TooLargeError{what}
	case ctx.Err() != nil:
		return UnavailableError{what, context.Cause(ctx)}
	case errors.As(err, &status):
		return responseError(what, status.StatusCode)
	}
	if known := connectionError(err); known != nil {
		if errors.Is(err, errPlain) {
			known = fmt.Errorf("%w; %w", known, errPlain)
		}
		return UnavailableError{what, known}
	}
	if errors.Is(err, errPlain) {
		return ContentError{what, "leads to plain HTTP, which is allowed only if the source says insecure"}
	}
	return UnavailableError{what, errors.New("the answer broke off, or is not what was asked for")}
}

// connectionError finds the error of the connection from before there was a response, so that no
// server wrote its text; nil if there is none.
func connectionError(err error) error {
	var dns *net.DNSError
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &certificate):
		return certificate
	case errors.As(err, &authority):
		return authority
	case errors.As(err, &name):
		return name
	case errors.As(err, &dns):
		return dns
	case errors.As(err, &record):
		return errors.New("the server does not speak TLS")
	case errors.Is(err, http.ErrSchemeMismatch):
		return errors.New("the server does not speak TLS")
	case errors.As(err, &op):
		return op
	}
	return nil
}
