// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// Check decides which certificates of a server are accepted.
type Check func(tls.ConnectionState) error

// HTTPClient makes a client that sends managers the credentials that config has for the API server:
// tokens from any source, and client certificates. Passwords are not sent. Check decides about the
// certificate of the manager at every connection.
func HTTPClient(config *rest.Config, t *http.Transport, check Check) (*http.Client, error) {
	to, err := config.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("reading credentials: %w", err)
	}
	// The settings that verify the API server do not apply to a manager.
	to.TLS.CAData, to.TLS.CAFile, to.TLS.ServerName, to.TLS.Insecure, to.TLS.NextProtos = nil, "", "", false, nil
	to.Username, to.Password = "", ""
	if t.TLSClientConfig, err = transport.TLSConfigFor(to); err != nil {
		return nil, fmt.Errorf("reading the client certificate: %w", err)
	}
	if t.TLSClientConfig == nil { // the transport has none
		t.TLSClientConfig = &tls.Config{}
	}
	t.TLSClientConfig.MinVersion = tls.VersionTLS12
	t.TLSClientConfig.InsecureSkipVerify = true // check verifies
	t.TLSClientConfig.VerifyConnection = check
	t.IdleConnTimeout = time.Minute
	round, err := transport.HTTPWrappersForConfig(to, t)
	if err != nil {
		return nil, fmt.Errorf("reading credentials: %w", err)
	}
	return &http.Client{
		Transport: round,
		// A redirect would send the credentials along.
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("it redirects, and no manager does") },
	}, nil
}

// NewClient makes a client of the server at a base URL, which has the scheme, the host and what is
// before /apis.
func NewClient(base *url.URL, http *http.Client) (rest.Interface, error) {
	return newClient(&rest.Config{Host: base.String()}, http)
}

// APIServerClient makes a client of the API server.
func APIServerClient(config *rest.Config) (rest.Interface, error) {
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return newClient(rest.CopyConfig(config), http)
}

func newClient(config *rest.Config, http *http.Client) (rest.Interface, error) {
	config.GroupVersion, config.APIPath = nil, ""
	config.ContentConfig = rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json", NegotiatedSerializer: scheme.Codecs.WithoutConversion()}
	config.QPS = -1 // no limit: no caller sends requests in a loop
	c, err := rest.UnversionedRESTClientForConfigAndClient(config, http)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return c, nil
}

// VerifyCertificate checks the certificate of a server against a name and CAs, those of this
// machine if roots is nil.
func VerifyCertificate(s tls.ConnectionState, name string, roots *x509.CertPool) error {
	between := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		between.AddCert(c)
	}
	if _, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: name, Intermediates: between}); err != nil {
		return fmt.Errorf("checking the certificate for %s: %w", name, err)
	}
	return nil
}

// warningCode is the code of warnings for users, which the API server passes on.
const warningCode = 299

// AddWarning adds a warning to the headers of a response. It is one line.
func AddWarning(h http.Header, text string) {
	line := strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if w, err := utilnet.NewWarningHeader(warningCode, "-", line); err == nil && !slices.Contains(h.Values("Warning"), w) {
		h.Add("Warning", w)
	}
}
