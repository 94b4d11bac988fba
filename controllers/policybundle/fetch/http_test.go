// SPDX-License-Identifier: Apache-2.0

package fetch_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/policybundle/fetch"
)

func at(url string) fetch.Source { return fetch.Source{HTTP: &fetch.HTTP{URL: url}} }

func TestAnArchiveOfAServerIsDownloadedOnce(t *testing.T) {
	text, downloads := archive(t), 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		tag := `"` + digest(text) + `"`
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		downloads++
		_, _ = w.Write(text)
	})
	f := fetch.New(holding(t))
	got, err := f.FetchBundle(t.Context(), at(s.URL+"/b.tar.gz?token=x"), nil)
	same(t, got, err, text)
	if want := s.URL + "/b.tar.gz@" + digest(text); got.Reference != want || got.ETag == "" {
		t.Errorf("it is %s, etag %s; want %s", got.Reference, got.ETag, want)
	}
	if again, err := f.FetchBundle(t.Context(), at(s.URL+"/b.tar.gz?token=x"), got); err != nil || again != got || downloads != 1 {
		t.Errorf("downloaded %d times: %v", downloads, err)
	}
	if _, err := f.FetchBundle(t.Context(), at(s.URL+"/b.tar.gz?token=y"), got); err != nil || downloads != 2 {
		t.Errorf("another query is another archive: downloaded %d times, %v", downloads, err)
	}
	text = append(bytes.Clone(text), 0)
	other, err := f.FetchBundle(t.Context(), at(s.URL+"/b.tar.gz?token=x"), got)
	same(t, other, err, text)
}

func TestTheBytesAreThoseOfTheServer(t *testing.T) {
	text := archive(t)
	for name, header := range map[string]string{"plain": "", "said to be encoded": "gzip"} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if header != "" {
					w.Header().Set("Content-Encoding", header)
				}
				if got := r.Header.Get("Accept-Encoding"); got != "" {
					t.Errorf("an encoding was asked for: %s", got)
				}
				_, _ = w.Write(text)
			})
			f := fetch.New(holding(t))
			got, err := f.FetchBundle(t.Context(), at(s.URL), nil)
			same(t, got, err, text)
			if again, err := f.FetchBundle(t.Context(), at(s.URL), got); err != nil || again != got {
				t.Errorf("without an ETag the same bytes are others: %v", err)
			}
		})
	}
}

func TestWhatServersAnswer(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, theirs, code) }
	}
	for name, tc := range map[string]struct {
		h     http.HandlerFunc
		check func(*testing.T, error)
	}{
		"401": {status(401), func(t *testing.T, err error) {
			fails[fetch.UnauthorizedError](t, err, true, "name a secret of the source")
		}},
		"403": {status(403), func(t *testing.T, err error) { fails[fetch.ForbiddenError](t, err, true, "403") }},
		"404": {status(404), func(t *testing.T, err error) {
			fails[fetch.NotFoundError](t, err, true, "/b is not there", "404")
		}},
		"418": {status(418), func(t *testing.T, err error) { fails[fetch.ContentError](t, err, true, "418") }},
		"304 that was not asked for": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, func(t *testing.T, err error) {
			fails[fetch.ContentError](t, err, true, "304")
		}},
		"429":    {status(429), func(t *testing.T, err error) { fails[fetch.UnavailableError](t, err, false, "429") }},
		"500":    {status(500), func(t *testing.T, err error) { fails[fetch.UnavailableError](t, err, false, "500") }},
		"a page": {status(200), func(t *testing.T, err error) { fails[fetch.ContentError](t, err, true, "is no archive") }},
		"a body without an end": {func(w http.ResponseWriter, _ *http.Request) {
			for err := error(nil); err == nil; { // until the client hangs up
				_, err = w.Write(make([]byte, 64<<10))
			}
		}, func(t *testing.T, err error) {
			fails[fetch.TooLargeError](t, err, true, "larger than 1048576 bytes")
		}},
		"less than it says": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte{0x1f, 0x8b})
		}, func(t *testing.T, err error) {
			fails[fetch.UnavailableError](t, err, false, "broke off")
		}},
		"no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(c, theirs+"\r\n\r\n")
			_ = c.Close()
		}, func(t *testing.T, err error) {
			fails[fetch.UnavailableError](t, err, false, "not what was asked for")
		}},
		"endless redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x?"+r.URL.RawQuery, http.StatusFound)
		}, func(t *testing.T, err error) {
			fails[fetch.HostError](t, err, true, "after 4 redirects")
		}},
		"a redirect to a file": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		}, func(t *testing.T, err error) {
			fails[fetch.ContentError](t, err, true, "plain HTTP")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tc.h)
			_, err := fetch.New(holding(t)).FetchBundle(t.Context(), at(s.URL+"/b?token="+ours), nil)
			tc.check(t, err)
		})
	}
}

func TestASlowServerIsGivenUp(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte{0x1f, 0x8b})
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	_, err := fetch.New(holding(t), fetch.WithTimeout(50*time.Millisecond)).FetchBundle(t.Context(), at(s.URL), nil)
	fails[fetch.UnavailableError](t, err, false, "it took longer than 50ms")
}

func TestAServerThatIsNotThere(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	_, err := fetch.New(holding(t)).FetchBundle(t.Context(), at(s.URL+"?token="+ours), nil)
	fails[fetch.UnavailableError](t, err, false, "connection refused")
}

func TestRedirectsAreFollowedToWhatIsAsSafe(t *testing.T) {
	text := archive(t)
	plain := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) })
	hops := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/1", "/2", "/3":
			http.Redirect(w, r, fmt.Sprintf("/%c", r.URL.Path[1]-1), http.StatusFound)
		case "/0":
			_, _ = w.Write(text)
		case "/plain":
			http.Redirect(w, r, plain.URL, http.StatusFound)
		}
	})
	safe, ca := serveTLS(t, hops)
	f := fetch.New(holding(t))
	got, err := f.FetchBundle(t.Context(), fetch.Source{HTTP: &fetch.HTTP{URL: safe.URL + "/3", CABundle: ca}}, nil)
	same(t, got, err, text)
	_, err = f.FetchBundle(t.Context(), fetch.Source{HTTP: &fetch.HTTP{URL: safe.URL + "/plain", CABundle: ca}}, nil)
	fails[fetch.HostError](t, err, true, "without TLS")
	up := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, safe.URL+"/0", http.StatusFound) })
	got, err = f.FetchBundle(t.Context(), fetch.Source{HTTP: &fetch.HTTP{URL: up.URL, CABundle: ca}}, nil)
	same(t, got, err, text)
	_, err = f.FetchBundle(t.Context(), at(safe.URL+"/0"), nil)
	fails[fetch.UnavailableError](t, err, false, "certificate signed by unknown authority")
	_, err = f.FetchBundle(t.Context(), fetch.Source{HTTP: &fetch.HTTP{URL: safe.URL, CABundle: []byte("-----")}}, nil)
	fails[fetch.SourceError](t, err, true, "caBundle")
}

func TestCredentialsGoToTheirHostOnly(t *testing.T) {
	text := archive(t)
	var elsewhere http.Header
	other, _ := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere = r.Header
		_, _ = w.Write(text)
	}))
	var got string
	s, ca := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		if r.URL.Path == "/away" {
			http.Redirect(w, r, other.URL, http.StatusFound)
			return
		}
		_, _ = w.Write(text)
	}))
	c := holding(t,
		secret("token", corev1.SecretTypeOpaque, map[string]string{"token": ours + "\n"}),
		secret("basic", corev1.SecretTypeBasicAuth, map[string]string{"username": "ann", "password": ours}),
	)
	for _, tc := range []struct{ secret, path, want string }{
		{"token", "/", "Bearer " + ours},
		{"basic", "/", "Basic YW5uOk9VUlBBU1NXT1JE"},
		{"token", "/away?token=" + ours, "Bearer " + ours},
	} {
		name := types.NamespacedName{Namespace: "shop", Name: tc.secret}
		from, err := fetch.New(c).FetchBundle(t.Context(), fetch.Source{HTTP: &fetch.HTTP{URL: s.URL + tc.path, Secret: &name, CABundle: ca}}, nil)
		same(t, from, err, text)
		if got != tc.want {
			t.Errorf("%s was asked with %q", tc.path, got)
		}
	}
	if elsewhere == nil || elsewhere.Get("Authorization") != "" || elsewhere.Get("Referer") != "" {
		t.Errorf("the other host was sent %v", elsewhere)
	}
}

func TestSecretsThatHaveNoCredentials(t *testing.T) {
	c := holding(t,
		secret("both", corev1.SecretTypeOpaque, map[string]string{"token": ours, "username": "ann", "password": ours}),
		secret("half", corev1.SecretTypeOpaque, map[string]string{"username": "ann"}),
		secret("lines", corev1.SecretTypeOpaque, map[string]string{"token": ours + "\nX: y"}),
	)
	for name, says := range map[string]string{"both": "it must have either", "half": "has no credentials", "lines": "cannot be sent"} {
		n := types.NamespacedName{Namespace: "shop", Name: name}
		_, err := fetch.New(c).FetchBundle(t.Context(), fetch.Source{HTTP: &fetch.HTTP{URL: "https://127.0.0.1:1", Secret: &n}}, nil)
		fails[fetch.ContentError](t, err, true, "secret shop/"+name, says)
	}
}

func TestURLsThatAreRefused(t *testing.T) {
	some := &types.NamespacedName{Namespace: "shop", Name: "s"}
	for url, says := range map[string]string{
		"":                                "it must be like https://",
		"ftp://example.com/b":             "it must be like https://",
		"https:///b":                      "it must be like https://",
		"https://:443/b":                  "it must be like https://",
		"https://" + ours + "@a.example/": "must not hold credentials",
		"https://a.example/#" + ours:      "fragment",
		"https://a.example/%zz" + ours:    "not a URL",
		"http://a.example/b":              "must begin with https://",
	} {
		_, err := fetch.New(holding(t)).FetchBundle(t.Context(), fetch.Source{HTTP: &fetch.HTTP{URL: url, Secret: some}}, nil)
		fails[fetch.SourceError](t, err, true, "http.url", says)
		if strings.Contains(url, ours) && strings.Contains(err.Error(), "a.example") {
			t.Errorf("%v tells the URL", err)
		}
	}
}
