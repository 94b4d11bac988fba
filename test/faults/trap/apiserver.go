// SPDX-License-Identifier: Apache-2.0

package trap

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
)

// APIServer passes requests to an API server on, without credentials of its own.
type APIServer struct {
	trap   *Trap
	proxy  *httputil.ReverseProxy
	server *httptest.Server
	// URL is where it listens.
	URL string
	// Authority is its certificate, as PEM. Clients send no tokens without TLS.
	Authority []byte
}

// ServeAPIServer listens on the loopback.
func ServeAPIServer(t *Trap, config *rest.Config) (*APIServer, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	a := &APIServer{trap: t}
	a.proxy = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,                         // watches
		ErrorLog:      log.New(io.Discard, "", 0), // of agents that are killed
	}
	a.server = httptest.NewUnstartedServer(a)
	a.server.EnableHTTP2 = true
	a.server.Config.ErrorLog = a.proxy.ErrorLog
	a.server.StartTLS()
	a.URL = a.server.URL
	a.Authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.server.Certificate().Raw})
	return a, nil
}

// Close ends all requests.
func (a *APIServer) Close() {
	a.server.CloseClientConnections()
	a.server.Close()
}

// ServeHTTP implements http.Handler.
func (a *APIServer) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	call := Write(q.Method, q.URL.Path)
	if call == "" {
		a.proxy.ServeHTTP(w, q)
		return
	}
	answer := httptest.NewRecorder()
	if a.trap.around(call, func() { a.proxy.ServeHTTP(answer, q) }) {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the agent may be gone
}

// Write names a request that changes something, such as PATCH nodeimages/status; empty for
// one that only reads.
func Write(method, path string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return ""
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	skip := 3 // apis, group, version
	if parts[0] == "api" {
		skip = 2
	}
	parts = parts[min(skip, len(parts)):]
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	switch {
	case len(parts) == 0:
		return method
	case len(parts) > 2:
		return method + " " + parts[0] + "/" + parts[2]
	}
	return method + " " + parts[0]
}
