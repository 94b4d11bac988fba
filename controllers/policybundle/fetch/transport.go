// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// maxRedirects is how many redirects are followed.
const maxRedirects = 3

// errPlain is the error of a request that would be sent without TLS.
var errPlain = errors.New("plain HTTP is allowed only if the source says insecure")

// gate checks every request, also those after redirects, and those to the servers of a registry's
// tokens and blobs.
type gate struct {
	next http.RoundTripper
	// hosts is nil if requests may go to every host.
	hosts *Hosts
	// plain allows HTTP without TLS.
	plain bool
	// authorize adds credentials if they are for the host of the request.
	authorize func(*http.Request)
}

// RoundTrip refuses a request, or sends it and bounds the response.
func (g *gate) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.checkRequest(req); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Header.Del("Referer") // has the query of where we were
	if g.authorize != nil {
		g.authorize(req)
	}
	resp, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = http.MaxBytesReader(nil, resp.Body, MaxSize)
	return resp, nil
}

func (g *gate) checkRequest(req *http.Request) error {
	redirects := 0
	for from := req.Response; from != nil && from.Request != nil; from = from.Request.Response {
		redirects++
	}
	if redirects > maxRedirects {
		return HostError{req.URL.Hostname(), fmt.Sprintf("is where the source leads after %d redirects, and it may be %d: name where the bundle is", redirects, maxRedirects)}
	}
	if redirects > 0 && req.Response.Request.URL.Scheme == "https" && req.URL.Scheme != "https" {
		return HostError{req.URL.Hostname(), "is where the source leads without TLS, which it began with: name where the bundle is"}
	}
	if req.URL.Scheme != "https" && (req.URL.Scheme != "http" || !g.plain) {
		return errPlain
	}
	if g.hosts == nil {
		return nil
	}
	if allowed, _ := g.hosts.allowsHost(req.URL.Hostname(), req.URL.Port(), req.URL.Scheme); allowed {
		return nil
	}
	return HostError{req.URL.Host, "is not one that bundles of namespaces may come from; if it is where a source redirects to, or where a registry has its tokens or blobs, it must be listed beside that: ask an administrator of Regatta"}
}

// newTransport makes the transport. If hosts are limited it uses no proxy, since the proxy would
// resolve the addresses.
func newTransport(hosts *Hosts, caBundle []byte) (*http.Transport, error) {
	t := &http.Transport{
		DisableCompression:     true, // the bytes must be those that were signed
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2:      true,
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if len(caBundle) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(caBundle) {
			return nil, SourceError{"caBundle", errors.New("there is no certificate in it; it must be PEM, base64-encoded once in the object")}
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	if hosts == nil {
		t.Proxy, t.DialContext = http.ProxyFromEnvironment, dialer.DialContext
		return t, nil
	}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("reading the address: %w", err)
		}
		_, named := hosts.allowsHost(host, port, schemeOf(port))
		if named {
			return dialer.DialContext(ctx, network, address)
		}
		careful := *dialer
		careful.Control = publicDialControl(host)
		return careful.DialContext(ctx, network, address)
	}
	return t, nil
}

// schemeOf returns the scheme with the default port: a dialer is not given the scheme.
func schemeOf(port string) string {
	if port == "80" {
		return "http"
	}
	return "https"
}
