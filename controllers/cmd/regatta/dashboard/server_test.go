// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/explain"
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
	own := "/" + s.secret
	tests := []struct {
		name, method, host, path string
		want                     int
	}{
		{"without the secret", "GET", "127.0.0.1:3100", "/", http.StatusUnauthorized},
		{"a stream without the secret", "GET", "127.0.0.1:3100", "/streams/workloads", http.StatusUnauthorized},
		{"with the secret of another run", "GET", "127.0.0.1:3100", "/" + other.secret + "/", http.StatusUnauthorized},
		{"with the beginning of the secret", "GET", "127.0.0.1:3100", own[:10] + "/", http.StatusUnauthorized},
		{"with the secret elsewhere", "GET", "127.0.0.1:3100", "/why" + own, http.StatusUnauthorized},
		{"with the address that was printed", "GET", "127.0.0.1:3100", own + "/", http.StatusOK},
		{"without its last slash", "GET", "127.0.0.1:3100", own, http.StatusPermanentRedirect},
		{"by another name of the host", "GET", "localhost:3100", own + "/", http.StatusOK},
		{"through a name that resolves to this machine", "GET", "attacker.example:3100", own + "/", http.StatusMisdirectedRequest},
		{"on another port", "GET", "127.0.0.1:80", own + "/", http.StatusMisdirectedRequest},
		{"a write", "POST", "127.0.0.1:3100", own + "/", http.StatusMethodNotAllowed},
		{"a deletion", "DELETE", "127.0.0.1:3100", own + "/streams/workloads", http.StatusMethodNotAllowed},
		{"a file that is not there", "GET", "127.0.0.1:3100", own + "/missing.js", http.StatusNotFound},
		{"a file outside leads inside", "GET", "127.0.0.1:3100", own + "/../server.go", http.StatusTemporaryRedirect},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), tc.method, "http://"+tc.host+tc.path, http.NoBody)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != tc.want {
				t.Errorf("got %d, want %d: %s", w.Code, tc.want, w.Body)
			}
			if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
				t.Errorf("the policy for content is %q", csp)
			}
			if cookies := w.Result().Cookies(); len(cookies) > 0 {
				t.Errorf("other servers of this machine get the cookies %v", cookies)
			}
			if !strings.Contains(tc.path, s.secret) && strings.Contains(w.Body.String(), s.secret) {
				t.Error("the answer has the secret in it")
			}
		})
	}
}

func TestBrowsersLeaveThePortOfHTTPOut(t *testing.T) {
	s := newServer(t.Context(), newCollector(&target.Access{}, ""), &net.TCPAddr{IP: net.IPv6loopback, Port: 80})
	for _, host := range []string{"[::1]", "[::1]:80", "localhost", "localhost:80"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "http://"+host+"/"+s.secret+"/", http.NoBody))
		if w.Code != http.StatusOK {
			t.Errorf("%s: got %d", host, w.Code)
		}
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
	types := map[string]string{".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
	for _, name := range listAssets(t) {
		if name == "index.html" {
			name = ""
		}
		response, err := http.Get(s.pageURL() + name)
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
	verdicts := []explain.Verdict{
		explain.UpToDate, explain.Updating, explain.Moved, explain.Held, explain.Waiting, explain.Hooked, explain.Deleting, explain.Placed, explain.Running,
		explain.Paused, explain.Ended, explain.Forgotten, explain.Lacking, explain.Refused, explain.Exempted, stateReady, stateNotReady, stateOutdated,
	}
	for _, verdict := range verdicts {
		if _, ok := english["pod-"+string(verdict)]; !ok {
			t.Errorf("verdict %s has no text", verdict)
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
