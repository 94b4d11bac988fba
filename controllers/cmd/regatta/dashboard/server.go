// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"
)

//go:embed assets
var assets embed.FS

// maxStreams is how many pages may be open at once. A browser opens six connections to one host.
const maxStreams = 32

// server serves the page, its streams and answers to why. All of its paths begin with a secret, which the address that is printed has:
// other users of the machine can reach the port too, and so can pages of other sites by way of the user's browser. A cookie would be sent to
// the servers of others on this machine, whatever their port.
type server struct {
	collector *collector
	hosts     []string
	secret    string
	mux       *http.ServeMux
	streams   chan struct{}
}

func newServer(ctx context.Context, c *collector, at net.Addr) *server {
	host, port, _ := net.SplitHostPort(at.String()) // a listener's address always has both
	s := &server{
		collector: c, secret: rand.Text(), mux: http.NewServeMux(), streams: make(chan struct{}, maxStreams),
		hosts: []string{net.JoinHostPort(host, port), "localhost:" + port},
	}
	if port == "80" { // browsers leave it out
		s.hosts = append(s.hosts, strings.TrimSuffix(s.hosts[0], ":80"), "localhost")
	}
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	s.mux.Handle("GET /", http.FileServerFS(files))
	s.mux.HandleFunc("GET /streams/workloads", s.streamPage(func(*http.Request) (page, error) { return c.openWorkloads(ctx), nil }))
	s.mux.HandleFunc("GET /streams/policies", s.streamPage(func(*http.Request) (page, error) { return c.openPolicies(ctx), nil }))
	s.mux.HandleFunc("GET /streams/budgets", s.streamPage(func(*http.Request) (page, error) { return c.openBudgets(ctx), nil }))
	s.mux.HandleFunc("GET /streams/decisions", s.streamPage(func(*http.Request) (page, error) { return c.openDecisions(ctx), nil }))
	openWorkload := func(r *http.Request) (page, error) { return c.openWorkload(ctx, r) }
	s.mux.HandleFunc("GET /streams/workloads/{resource}/{name}", s.streamPage(openWorkload))
	s.mux.HandleFunc("GET /streams/workloads/{resource}/{namespace}/{name}", s.streamPage(openWorkload))
	s.mux.HandleFunc("GET /why", s.answerWhy)
	return s
}

// pageURL is the address of the page.
func (s *server) pageURL() string { return "http://" + s.hosts[0] + "/" + s.secret + "/" }

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	switch {
	case !slices.Contains(s.hosts, strings.ToLower(r.Host)):
		// A site whose name resolves to this machine would be allowed to read the page.
		http.Error(w, "Open the address that regatta dashboard has printed.", http.StatusMisdirectedRequest)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "The dashboard changes nothing; want GET or HEAD.", http.StatusMethodNotAllowed)
	case !s.hasSecret(r):
		http.Error(w, "Open the address that regatta dashboard has printed: it has a secret in it that this request lacks.", http.StatusUnauthorized)
	case r.URL.Path == "/"+s.secret:
		http.Redirect(w, r, r.URL.Path+"/", http.StatusPermanentRedirect)
	default:
		http.StripPrefix("/"+s.secret, s.mux).ServeHTTP(w, r)
	}
}

// hasSecret is true if the first part of the path is the secret.
func (s *server) hasSecret(r *http.Request) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return subtle.ConstantTimeCompare([]byte(first), []byte(s.secret)) == 1
}

// answerWhy answers why something was decided about one object, with what would change the answer.
func (s *server) answerWhy(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	reply, err := s.collector.explainObject(r.Context(), q.Get("group"), q.Get("kind"), q.Get("namespace"), q.Get("name"))
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
		return
	}
	_ = json.NewEncoder(w).Encode(reply) // a browser that went away needs no answer
}
