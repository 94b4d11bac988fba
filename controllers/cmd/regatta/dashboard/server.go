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
	"net/url"
	"slices"
	"strings"
)

//go:embed assets
var assets embed.FS

// secretParameter is the parameter of the address that is printed.
const secretParameter = "secret"

// maxStreams is how many pages may be open at once. A browser opens six connections to one host.
const maxStreams = 32

// server serves the page, its streams and answers to why. A request needs the secret of the address that was printed: other users of the
// machine can reach the port too, and so can pages of other sites by way of the user's browser.
type server struct {
	collector *collector
	hosts     []string
	port      string
	secret    string
	mux       *http.ServeMux
	streams   chan struct{}
}

func newServer(ctx context.Context, c *collector, at net.Addr) *server {
	host, port, _ := net.SplitHostPort(at.String()) // a listener's address always has both
	s := &server{
		collector: c, port: port, secret: rand.Text(), mux: http.NewServeMux(), streams: make(chan struct{}, maxStreams),
		hosts: []string{net.JoinHostPort(host, port), "localhost:" + port},
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

// pageURL is the address that gives a browser the secret.
func (s *server) pageURL() string {
	u := url.URL{Scheme: "http", Host: s.hosts[0], Path: "/", RawQuery: url.Values{secretParameter: {s.secret}}.Encode()}
	return u.String()
}

// cookieName has the port: browsers send a cookie to all ports of a host.
func (s *server) cookieName() string { return "regatta-dashboard-" + s.port }

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
	case r.URL.Path == "/" && s.isSecret(r.URL.Query().Get(secretParameter)):
		http.SetCookie(w, &http.Cookie{Name: s.cookieName(), Value: s.secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, "/", http.StatusSeeOther)
	case !s.isSignedIn(r):
		http.Error(w, "Open the address that regatta dashboard has printed: it has a secret in it that this request lacks.", http.StatusUnauthorized)
	default:
		s.mux.ServeHTTP(w, r)
	}
}

func (s *server) isSecret(text string) bool {
	return subtle.ConstantTimeCompare([]byte(text), []byte(s.secret)) == 1
}

func (s *server) isSignedIn(r *http.Request) bool {
	return slices.ContainsFunc(r.CookiesNamed(s.cookieName()), func(c *http.Cookie) bool { return s.isSecret(c.Value) })
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
