// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"sync"
)

// CAs are the CA certificates in a file, which verify a server in place of those of the machine. The
// file is checked for every request: to renew a CA, replace the file. The process does not need a
// restart. Connections that were made with the old file are closed.
type CAs struct {
	path string

	mu   sync.Mutex
	text []byte
	with *http.Transport // the transport that trusts the certificates in the text
}

// OpenCAs reads a file of certificates in PEM. It fails if the file cannot be read or has no
// certificates.
func OpenCAs(path string) (*CAs, error) {
	c := &CAs{path: path}
	if _, err := c.currentTransport(); err != nil {
		return nil, err
	}
	return c, nil
}

// WithCAs trusts only these certificates.
func WithCAs(c *CAs) HTTPOption { return func(h *HTTP) { h.client.Transport = c } }

// currentTransport returns a transport that trusts the current certificates of the file.
func (c *CAs) currentTransport() (*http.Transport, error) {
	text, err := os.ReadFile(c.path)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates that the server's is checked with: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.with != nil && bytes.Equal(text, c.text) {
		return c.with, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("reading the certificates that the server's is checked with: %s has none in PEM", c.path)
	}
	if c.with != nil {
		c.with.CloseIdleConnections()
	}
	c.text, c.with = text, defaultTransport()
	c.with.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return c.with, nil
}

// RoundTrip implements http.RoundTripper.
func (c *CAs) RoundTrip(req *http.Request) (*http.Response, error) {
	t, err := c.currentTransport()
	if err != nil {
		return nil, err
	}
	return t.RoundTrip(req)
}

// CloseIdleConnections closes idle connections. Clients call it when they are closed.
func (c *CAs) CloseIdleConnections() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.with.CloseIdleConnections()
}

func defaultTransport() *http.Transport { return http.DefaultTransport.(*http.Transport).Clone() }
