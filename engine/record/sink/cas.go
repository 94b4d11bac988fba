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

// CAs are the certificates in a file that a server's is checked with, in place of
// those of the machine. The file is looked at for every request: to renew a CA,
// replace the file. The process does not need a restart. Connections that were made by
// what it had before are closed.
type CAs struct {
	path string

	mu   sync.Mutex
	text []byte
	with *http.Transport // that trusts what the text has
}

// OpenCAs reads a file of certificates in PEM. It fails where the file cannot be
// read or has none.
func OpenCAs(path string) (*CAs, error) {
	c := &CAs{path: path}
	if _, err := c.currentTransport(); err != nil {
		return nil, err
	}
	return c, nil
}

// WithCAs trusts these certificates alone.
func WithCAs(c *CAs) HTTPOption { return func(h *HTTP) { h.client.Transport = c } }

// currentTransport is one that trusts what the file has now.
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

// CloseIdleConnections is called by clients that are closed.
func (c *CAs) CloseIdleConnections() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.with.CloseIdleConnections()
}

func defaultTransport() *http.Transport { return http.DefaultTransport.(*http.Transport).Clone() }
