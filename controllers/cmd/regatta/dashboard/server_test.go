// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
)

// serveForTest serves a dashboard on a free port.
func serveForTest(t *testing.T, c *collector) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	s := newServer(ctx, c, listener.Addr())
	ended := make(chan error, 1)
	go func() { ended <- serveHTTP(ctx, s, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestRequestsNeedTheSecret(t *testing.T) {
	s := newServer(t.Context(), newCollector(&target.Access{}, ""), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3100})
	other := newServer(t.Context(), newCollector(&target.Access{}, ""), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3100})
	tests := []struct {
		name, method, host, path, cookie string
		want                             int
	}{
		{"without the secret", "GET", "127.0.0.1:3100", "/", "", http.StatusUnauthorized},
		{"a stream without the secret", "GET", "127.0.0.1:3100", "/streams/workloads", "", http.StatusUnauthorized},
		{"with the secret of another run", "GET", "127.0.0.1:3100", "/?secret=" + other.secret, "", http.StatusUnauthorized},
		{"with an empty secret", "GET", "127.0.0.1:3100", "/?secret=", "", http.StatusUnauthorized},
		{"with the address that was printed", "GET", "127.0.0.1:3100", "/?secret=" + s.secret, "", http.StatusSeeOther},
		{"the secret is no key to other paths", "GET", "127.0.0.1:3100", "/why?secret=" + s.secret, "", http.StatusUnauthorized},
		{"with the cookie", "GET", "127.0.0.1:3100", "/", s.secret, http.StatusOK},
		{"by another name of the host", "GET", "localhost:3100", "/", s.secret, http.StatusOK},
		{"with the cookie of another run", "GET", "127.0.0.1:3100", "/", other.secret, http.StatusUnauthorized},
		{"through a name that resolves to this machine", "GET", "attacker.example:3100", "/", s.secret, http.StatusMisdirectedRequest},
		{"through a name, with the secret", "GET", "attacker.example:3100", "/?secret=" + s.secret, "", http.StatusMisdirectedRequest},
		{"a write", "POST", "127.0.0.1:3100", "/", s.secret, http.StatusMethodNotAllowed},
		{"a deletion", "DELETE", "127.0.0.1:3100", "/streams/workloads", s.secret, http.StatusMethodNotAllowed},
		{"a file that is not there", "GET", "127.0.0.1:3100", "/missing.js", s.secret, http.StatusNotFound},
		{"a file outside leads inside", "GET", "127.0.0.1:3100", "/../server.go", s.secret, http.StatusTemporaryRedirect},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), tc.method, "http://"+tc.host+tc.path, http.NoBody)
			if tc.cookie != "" {
				r.AddCookie(&http.Cookie{Name: s.cookieName(), Value: tc.cookie})
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != tc.want {
				t.Errorf("got %d, want %d: %s", w.Code, tc.want, w.Body)
			}
			if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
				t.Errorf("the policy for content is %q", csp)
			}
			if tc.want != http.StatusOK && tc.want != http.StatusSeeOther && strings.Contains(w.Body.String(), s.secret) {
				t.Error("the answer has the secret in it")
			}
		})
	}
}

func TestTheCookieIsForThisPageOnly(t *testing.T) {
	s := serveForTest(t, newCollector(&target.Access{}, ""))
	noRedirect := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := noRedirect.Get(s.pageURL())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	cookies := response.Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || cookies[0].Domain != "" {
		t.Fatalf("the cookies are %+v", cookies)
	}
	if to := response.Header.Get("Location"); strings.Contains(to, s.secret) {
		t.Errorf("the address after the first request still has the secret in it: %s", to)
	}
}

// The browser refuses what the policy for content does not allow, such as styles in attributes and scripts in the page.
func TestFilesObeyThePolicyForContent(t *testing.T) {
	forbidden := regexp.MustCompile(`(?i)innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\sstyle="|\son[a-z]+="|https?://(?:[^w]|w[^w])|<script>|<style`)
	for _, name := range listAssets(t) {
		raw, err := fs.ReadFile(assets, "assets/"+name)
		if err != nil {
			t.Fatal(err)
		}
		if found := forbidden.FindString(strings.ReplaceAll(string(raw), "http://www.w3.org/", "")); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
}

func listAssets(t *testing.T) (out []string) {
	t.Helper()
	entries, err := fs.ReadDir(assets, "assets")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestEachFileIsServedWithItsType(t *testing.T) {
	s := serveForTest(t, newCollector(&target.Access{}, ""))
	user := newBrowserClient(t, s)
	types := map[string]string{".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
	for _, name := range listAssets(t) {
		if name == "index.html" {
			name = ""
		}
		response, err := user.Get("http://" + s.hosts[0] + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		want := types["."+strings.TrimPrefix(name[strings.LastIndex(name, ".")+1:], ".")]
		if name == "" {
			want = types[".html"]
		}
		if got := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || want == "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s is served with %d as %q, want %q", name, response.StatusCode, got, want)
		}
	}
}

// newBrowserClient has opened the address that was printed.
func newBrowserClient(t *testing.T, s *server) *http.Client {
	t.Helper()
	at, err := url.Parse(s.pageURL())
	if err != nil {
		t.Fatal(err)
	}
	jar := &oneCookie{name: s.cookieName()}
	user := &http.Client{Jar: jar}
	response, err := user.Get(at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK || !strings.Contains(string(body), "<main") {
		t.Fatalf("the page is %d: %s", response.StatusCode, body)
	}
	return user
}

// oneCookie keeps the cookie of a dashboard.
type oneCookie struct {
	name   string
	cookie *http.Cookie
}

func (j *oneCookie) SetCookies(_ *url.URL, cookies []*http.Cookie) {
	if i := slices.IndexFunc(cookies, func(c *http.Cookie) bool { return c.Name == j.name }); i >= 0 {
		j.cookie = cookies[i]
	}
}

func (j *oneCookie) Cookies(*url.URL) []*http.Cookie {
	if j.cookie == nil {
		return nil
	}
	return []*http.Cookie{j.cookie}
}

func TestOnlySoManyPagesAreOpenAtOnce(t *testing.T) {
	s := newServer(t.Context(), newCollector(&target.Access{}, ""), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3100})
	for range maxStreams {
		s.streams <- struct{}{}
	}
	w := httptest.NewRecorder()
	s.streamPage(func(*http.Request) (page, error) { return nil, fmt.Errorf("it was opened") })(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", http.NoBody))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "close one") {
		t.Errorf("got %d: %s", w.Code, w.Body)
	}
}

// Both languages have the same texts, and the scripts use none that is missing.
func TestTextsAreComplete(t *testing.T) {
	raw, err := fs.ReadFile(assets, "assets/text.js")
	if err != nil {
		t.Fatal(err)
	}
	english, chinese := catalogKeys(t, string(raw), "en"), catalogKeys(t, string(raw), "zh")
	for key, places := range english {
		if other, ok := chinese[key]; !ok || other != places {
			t.Errorf("text %q has the places %s in English and %s in Chinese", key, places, other)
		}
	}
	if len(english) != len(chinese) || len(english) < 100 {
		t.Errorf("there are %d English and %d Chinese texts", len(english), len(chinese))
	}
	used := regexp.MustCompile(`\btext\("([a-zA-Z-]+)"`)
	for _, name := range listAssets(t) {
		script, err := fs.ReadFile(assets, "assets/"+name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range used.FindAllStringSubmatch(string(script), -1) {
			if _, ok := english[m[1]]; !ok {
				t.Errorf("%s uses text %q, which is missing", name, m[1])
			}
		}
	}
	for _, p := range []phase{phaseComplete, phaseUpdating, phaseHeld, phasePaused, phaseLate, phaseFailing, phaseManual, phaseUnseen, phaseUnreadable} {
		if _, ok := english[string(p)]; !ok {
			t.Errorf("phase %s has no text", p)
		}
	}
}

// catalogKeys returns the keys of a catalog with the places of its texts for values.
func catalogKeys(t *testing.T, script, language string) map[string]string {
	t.Helper()
	_, after, ok := strings.Cut(script, "\n  "+language+": {")
	catalog, _, ended := strings.Cut(after, "\n  },")
	if !ok || !ended {
		t.Fatalf("there is no catalog for %s", language)
	}
	out := map[string]string{}
	places := regexp.MustCompile(`\{\d\}`)
	for _, m := range regexp.MustCompile(`(?m)(?:^|[,{]) *"?([a-zA-Z-]+)"?: "([^"]*)"`).FindAllStringSubmatch(catalog, -1) {
		found := places.FindAllString(m[2], -1)
		slices.Sort(found)
		out[m[1]] = strings.Join(slices.Compact(found), "")
	}
	return out
}
