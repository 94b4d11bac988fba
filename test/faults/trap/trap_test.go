// SPDX-License-Identifier: Apache-2.0

package trap

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/cri/critest"
)

func TestWritesAreNamed(t *testing.T) {
	for path, want := range map[string]string{
		"GET /api/v1/pods":                                        "",
		"PATCH /api/v1/namespaces/shop/pods/web":                  "PATCH pods",
		"PATCH /api/v1/namespaces/shop":                           "PATCH namespaces",
		"POST /api/v1/namespaces/shop/events":                     "POST events",
		"PATCH /apis/apps.kruise.io/v1beta1/nodeimages/n1/status": "PATCH nodeimages/status",
		"PATCH /apis/apps.kruise.io/v1beta1/namespaces/shop/containerrecreaterequests/r1/status": "PATCH containerrecreaterequests/status",
		"POST /": "POST",
	} {
		method, path, _ := strings.Cut(path, " ")
		if got := Write(method, path); got != want {
			t.Errorf("%s %s is %q, want %q", method, path, got, want)
		}
	}
}

// stopped is a runtime whose container is stopped by way of a trap.
func stopped(t *testing.T, p Point) (runtime *critest.Runtime, trap *Trap, err error) {
	t.Helper()
	runtime, trap = critest.Start(t, "containerd"), New()
	runtime.StartRun("u1", "main")
	runtime.BeforeStop = func(string, int64) error {
		time.Sleep(2 * begun)
		return nil
	}
	socket := filepath.Join(t.TempDir(), "trap.sock")
	proxy, err := ServeRuntime(t.Context(), trap, socket, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", runtime.Socket)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	trap.Set(p, func() {})
	r, err := cri.Connect(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	containers, err := r.PodContainers(t.Context(), "u1")
	if err != nil {
		t.Fatal(err)
	}
	return runtime, trap, r.StopContainer(t.Context(), containers["main"], time.Second)
}

func TestTheRuntimeBehindATrap(t *testing.T) {
	for _, tc := range []struct {
		name    string
		point   Point
		springs bool
		reached bool // the runtime
	}{
		{"without a point all calls pass", Point{}, false, true},
		{"before a call it never arrives", Point{Call: "StopContainer", Nth: 1, Moment: Before}, true, false},
		{"in a call it arrives", Point{Call: "StopContainer", Nth: 1, Moment: During}, true, true},
		{"after a call its answer is lost", Point{Call: "StopContainer", Nth: 1, Moment: After}, true, true},
		{"a second call is not the first", Point{Call: "StopContainer", Nth: 2, Moment: Before}, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			runtime, trap, err := stopped(t, tc.point)
			if (err != nil) != tc.springs {
				t.Errorf("got %v", err)
			}
			select {
			case <-trap.Sprung():
				if !tc.springs {
					t.Error("it sprung")
				}
			default:
				if tc.springs {
					t.Error("it did not spring")
				}
			}
			if got := len(runtime.RecordedCalls()) > 0; got != tc.reached || got != (trap.Passed("StopContainer") == 1) {
				t.Errorf("the runtime was asked for %q", runtime.RecordedCalls())
			}
			if got := trap.Calls(); !slices.Equal(got, []string{"Version", "ImageFsInfo", "ListContainers", "StopContainer"}) {
				t.Errorf("it counted %q", got)
			}
		})
	}
}

func TestTheAPIServerBehindATrap(t *testing.T) {
	writes := 0
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method == http.MethodPatch {
			writes++
		}
		if q.Header.Get("Authorization") != "Bearer t1" {
			http.Error(w, "no token", http.StatusUnauthorized)
		}
	}))
	t.Cleanup(api.Close)
	trap := New()
	proxy, err := ServeAPIServer(trap, &rest.Config{Host: api.URL, BearerToken: "another"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(proxy.Authority)
	agent := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}}
	trap.Set(Point{Call: "PATCH pods", Nth: 2, Moment: After}, func() {})
	ask := func(method string) error {
		q, err := http.NewRequestWithContext(t.Context(), method, proxy.URL+"/api/v1/namespaces/shop/pods/web", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer t1")
		answer, err := agent.Do(q)
		if err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s answers %s", method, answer.Status)
		}
		return answer.Body.Close()
	}
	if err := ask(http.MethodGet); err != nil {
		t.Error(err)
	}
	if err := ask(http.MethodPatch); err != nil {
		t.Error(err)
	}
	if err := ask(http.MethodPatch); err == nil {
		t.Error("the answer of the second write arrived")
	}
	if writes != 2 || trap.Count("PATCH pods") != 2 || len(trap.Calls()) != 2 {
		t.Errorf("%d writes, it counted %q", writes, trap.Calls())
	}
}
