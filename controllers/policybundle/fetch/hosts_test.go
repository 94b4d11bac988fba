// SPDX-License-Identifier: Apache-2.0

package fetch_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/policybundle/fetch"
)

func hosts(t *testing.T, patterns ...string) fetch.Option {
	t.Helper()
	h, err := fetch.ParseHosts(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return fetch.WithHosts(h)
}

func TestHostsThatMayBeAsked(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, theirs, http.StatusTeapot) })
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	const unlisted = "is not one that bundles of namespaces may come from"
	for name, tc := range map[string]struct {
		url      string
		patterns []string
		refused  string // "" if the server is reached
	}{
		"no host, by default":                  {"http://127.0.0.1:" + port, nil, unlisted},
		"an address with its port":             {"http://127.0.0.1:" + port, []string{"127.0.0.1:" + port}, ""},
		"an address at another port":           {"http://127.0.0.1:" + port, []string{"127.0.0.1"}, unlisted},
		"an address in other clothes":          {"http://[::ffff:127.0.0.1]:" + port, []string{"127.0.0.1:" + port}, ""},
		"a name that leads inside, listed":     {"http://LocalHost:" + port, []string{"localhost:" + port}, ""},
		"a domain itself":                      {"http://localhost:" + port, []string{"*.localhost:" + port}, unlisted},
		"a name that only ends alike":          {"http://notlocalhost:" + port, []string{"*.localhost:" + port, "localhost:" + port}, unlisted},
		"an address as if it were in a domain": {"http://127.0.0.1:" + port, []string{"*.0.0.1:" + port}, unlisted},
		"another host":                         {"http://localhost:" + port, []string{"127.0.0.1:" + port}, unlisted},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fetch.New(holding(t), hosts(t, tc.patterns...)).FetchBundle(t.Context(), at(tc.url+"/?token="+ours), nil)
			if tc.refused == "" {
				fails[fetch.ContentError](t, err, true, "418")
				return
			}
			fails[fetch.HostError](t, err, true, tc.refused)
		})
	}
}

func TestPatternsOfHosts(t *testing.T) {
	for _, p := range []string{"", "*", "*.", "**.example.com", "a.*.com", "https://a.example", "a.example/b", "u@a.example", "a.example:", "a.example:x", "a.example:70000", "a.example:0", ":443", "a b"} {
		if _, err := fetch.ParseHosts([]string{p}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", p)) {
			t.Errorf("%q: %v", p, err)
		}
	}
	if _, err := fetch.ParseHosts([]string{"a.example", "A.example.:5000", "*.example.com", "*.example.com:8443", "10.0.0.1", "10.0.0.1:80", "::1", "[::1]", "[::1]:80"}); err != nil {
		t.Error(err)
	}
}

// TestRedirectsStayAmongTheHosts also says that what limits redirects of servers
// limits where a registry has its blobs and its tokens.
func TestRedirectsStayAmongTheHosts(t *testing.T) {
	var reached atomic.Int64
	var tokens atomic.Bool
	text, store := archive(t), images()
	away := serve(t, func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		if r.URL.Path == "/token" {
			_, _ = io.WriteString(w, `{"token": "t"}`)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/v2/") {
			store.ServeHTTP(w, r)
			return
		}
		_, _ = w.Write(text)
	})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case tokens.Load() && r.Header.Get("Authorization") == "":
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+strings.Replace(away.URL, "127.0.0.1", "localhost", 1)+`/token"`)
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasPrefix(r.URL.Path, "/v2/") && (!strings.Contains(r.URL.Path, "/blobs/sha256") || r.Method != http.MethodGet):
			store.ServeHTTP(w, r)
		default:
			http.Redirect(w, r, away.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}
	})
	hostOf := func(raw string) string {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		return u.Host
	}
	here, there := hostOf(s.URL), hostOf(away.URL)
	push(t, here+"/shop/freeze:v1", http.DefaultTransport)
	artifact := fetch.Source{OCI: &fetch.OCI{Reference: here + "/shop/freeze:v1", Insecure: true}}
	for _, step := range []struct {
		name   string
		source fetch.Source
		tokens bool
		named  string
	}{
		{"a redirect", at(s.URL + "/b"), false, there},
		{"a blob", artifact, false, there},
		{"a token", artifact, true, strings.Replace(there, "127.0.0.1", "localhost", 1)},
	} {
		t.Run(step.name, func(t *testing.T) {
			tokens.Store(step.tokens)
			reached.Store(0)
			_, err := fetch.New(holding(t), hosts(t, here)).FetchBundle(t.Context(), step.source, nil)
			fails[fetch.HostError](t, err, true, "the host "+step.named, "it must be listed beside that")
			if n := reached.Load(); n > 0 {
				t.Errorf("the other host was asked %d times", n)
			}
			got, err := fetch.New(holding(t), hosts(t, here, there, step.named)).FetchBundle(t.Context(), step.source, nil)
			same(t, got, err, text)
		})
	}
}

func TestNoProxyForTenants(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		t.Error("the proxy was asked")
		w.WriteHeader(http.StatusTeapot)
	})
	t.Setenv("HTTPS_PROXY", s.URL)
	t.Setenv("HTTP_PROXY", s.URL)
	_, err := fetch.New(holding(t), hosts(t, "*.invalid")).FetchBundle(t.Context(), at("https://a.invalid/"), nil)
	fails[fetch.UnavailableError](t, err, false)
}

// TestBundlesOfManyNamespacesAtOnce is for the race detector.
func TestBundlesOfManyNamespacesAtOnce(t *testing.T) {
	text := archive(t)
	s, ca := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+ours {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write(text)
	}))
	name := types.NamespacedName{Namespace: "shop", Name: "token"}
	f := fetch.New(holding(t, secret(name.Name, corev1.SecretTypeOpaque, map[string]string{"token": ours})), hosts(t, strings.TrimPrefix(s.URL, "https://")))
	for range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			got, err := f.FetchBundle(t.Context(), fetch.Source{HTTP: &fetch.HTTP{URL: s.URL, Secret: &name, CABundle: ca}}, nil)
			same(t, got, err, text)
		})
	}
}
