// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/types"
)

// Source is the source of a bundle. Exactly one of its fields is set.
type Source struct {
	// Files are the files of the bundle by their paths.
	Files     map[string]string
	ConfigMap *ConfigMap
	OCI       *OCI
	HTTP      *HTTP
}

// ConfigMap has either an archive, in the key bundle.tar.gz of binaryData, or
// files of text. A key cannot have slashes. Policies need none, since only their package matters, but
// data files do: before __data.json (or .yaml, .yml) each __ of a key represents a slash, so
// extend__rollout__freeze__data.json is the file data.json in the folder extend/rollout/freeze. Keys
// that name neither a Rego file nor such a data file, other than .manifest and .signatures.json, are
// no part of the bundle.
type ConfigMap struct{ Namespace, Name string }

// OCI is an artifact in a registry, as `regatta policy push`, opa and oras make
// them.
type OCI struct {
	// Reference has a tag or a digest. An artifact with a digest is pulled only once.
	Reference string
	// PullSecrets are of the type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg, and are used
	// like those of a pod.
	PullSecrets []types.NamespacedName
	// Insecure allows plain HTTP, also for credentials.
	Insecure bool
	// CABundle has the certificates that are trusted, in PEM; the machine's if it
	// is empty.
	CABundle []byte
}

// HTTP is an archive on an HTTP server.
type HTTP struct {
	// URL begins with https://, or http:// if nothing is secret. Its query is sent, but is in no error or
	// status.
	URL string
	// Secret has the keys username and password, or token, which is sent as
	// a bearer token. They go to the host of the URL only.
	Secret *types.NamespacedName
	// CABundle has the certificates that are trusted, in PEM; the machine's if it
	// is empty.
	CABundle []byte
}

// Fetched is the result of a fetch.
type Fetched struct {
	// Archive is in OPA's format, exactly as the source has it unless Packed.
	Archive []byte
	// Digest is the SHA-256 of Archive: sha256:<hex>.
	Digest string
	// Reference names exactly these bytes, for users: REPOSITORY@DIGEST with the digest in the registry,
	// URL@DIGEST, files@DIGEST or configmap/NAMESPACE/NAME@RESOURCEVERSION.
	Reference string
	// ETag is the ETag of an HTTP server's response, "" if it has none.
	ETag string
	// Packed is true if this package made the archive from text files. The same files make the same bytes.
	// It is signed only if .signatures.json is one of the files.
	Packed bool

	// origin is the whole URL, since a Reference does not have the query.
	origin string
}

func (s Source) validateSource() error {
	set := 0
	for _, is := range []bool{s.Files != nil, s.ConfigMap != nil, s.OCI != nil, s.HTTP != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return SourceError{"source", fmt.Errorf("there are %d sources, and a bundle has one: set files, configMap, oci or http", set)}
	}
	return nil
}

// ValidateSource returns a SourceError if no fetch of a source can succeed, whatever the server has. It sends no request.
func ValidateSource(s Source) error {
	if err := s.validateSource(); err != nil {
		return err
	}
	var caBundle []byte
	switch {
	case s.OCI != nil:
		if _, err := name.ParseReference(s.OCI.Reference); err != nil {
			return SourceError{"oci.reference", err}
		}
		caBundle = s.OCI.CABundle
	case s.HTTP != nil:
		if _, err := s.HTTP.parseURL(); err != nil {
			return err
		}
		caBundle = s.HTTP.CABundle
	}
	_, err := newTransport(nil, caBundle)
	return err
}

// parseURL reads the URL of an HTTP source.
func (h HTTP) parseURL() (*url.URL, error) {
	u, err := url.Parse(h.URL)
	switch {
	case err != nil: // err would contain the URL
		return nil, SourceError{"http.url", errors.New("it is not a URL")}
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Hostname() == "":
		return nil, SourceError{"http.url", errors.New("it must be like https://HOST/PATH")}
	case u.User != nil:
		return nil, SourceError{"http.url", errors.New("it must not hold credentials; put them into a secret, and name that")}
	case u.Fragment != "":
		return nil, SourceError{"http.url", errors.New("it must not have a fragment (#), which is never sent")}
	case h.Secret != nil && u.Scheme != "https":
		return nil, SourceError{"http.url", errors.New("it must begin with https:// when there is a secret, which others could read on its way")}
	}
	return u, nil
}

// redactedURL is a URL without the parts that may be secret.
func redactedURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
