// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/controllers/explain"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

var web = Question{Kind: "Pod", Namespace: "shop", Name: "web-1"}

func ask(t *testing.T, config *rest.Config, flags Flags, q Question) (string, []error, error) {
	t.Helper()
	if flags.Namespace == "" {
		flags.Namespace = "kruise-system"
	}
	a, err := New(config, flags)
	if err != nil {
		return "", nil, err
	}
	defer a.Close()
	reply, warnings, err := a.Ask(t.Context(), q)
	return reply.Answer.Replica, warnings, err
}

func TestTheNewestAnswerWins(t *testing.T) {
	tests := []struct {
		name     string
		replicas map[int64]int // when they decided, and the code they refuse with
		want     string
		warnings int
		err      string
	}{
		{"of two that have decided", map[int64]int{10: 0, 20: 0}, "at 20", 0, ""},
		{"the one that leads knows, another does not", map[int64]int{10: 0, 20: http.StatusNotFound}, "at 10", 0, ""},
		{"one that fails is a warning", map[int64]int{10: 0, 20: http.StatusInternalServerError}, "at 10", 1, ""},
		{"one that refuses is a warning", map[int64]int{10: 0, 20: http.StatusForbidden}, "at 10", 1, ""},
		{"none has decided", map[int64]int{10: http.StatusNotFound, 20: http.StatusNotFound}, "", 0, "no manager has decided anything about Pod shop/web-1 (2 asked)"},
		{"none knows who asks", map[int64]int{10: http.StatusUnauthorized}, "", 0, "log in again"},
		{"none may tell", map[int64]int{10: http.StatusForbidden, 20: http.StatusForbidden}, "", 0, "jane may not get it. Only users who may get the object itself may ask why something was decided"},
		{"all fail", map[int64]int{10: http.StatusInternalServerError}, "", 0, "500"},
		{"it is something else that answers", map[int64]int{10: http.StatusTeapot}, "", 0, "is hardly a manager"},
		{"it redirects, and gets no credentials a second time", map[int64]int{10: http.StatusFound}, "", 0, "it redirects"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, nil)
			flags := Flags{Insecure: true}
			for decided, code := range tc.replicas {
				flags.Endpoints = append(flags.Endpoints, newManager(t, decided, code).URL)
			}
			got, warnings, err := ask(t, c.config(), flags, web)
			if got != tc.want || len(warnings) != tc.warnings {
				t.Errorf("got %q, warnings %v", got, warnings)
			}
			if (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

func TestASlowReplicaHoldsNobodyUp(t *testing.T) {
	c := newCluster(t, nil)
	config := c.config()
	config.Timeout = 3 * time.Second // the other one must answer in it
	flags := Flags{Insecure: true, Endpoints: []string{newManager(t, 1, 0).URL, newManager(t, 2, http.StatusGatewayTimeout).URL}}
	got, warnings, err := ask(t, config, flags, web)
	if got != "at 1" || len(warnings) != 1 || err != nil || !errors.Is(warnings[0], context.DeadlineExceeded) {
		t.Errorf("got %q, %v, %v", got, warnings, err)
	}
}

func TestThePodsAreAskedForToo(t *testing.T) {
	m := newManager(t, 1, 0)
	q := Question{Kind: "CloneSet", Namespace: "shop", Name: "web", Pods: true}
	if _, _, err := ask(t, newCluster(t, nil).config(), Flags{Insecure: true, Endpoints: []string{m.URL}}, q); err != nil {
		t.Fatal(err)
	}
	if got := m.query.Load(); got != "/v1/why?kind=CloneSet&name=web&namespace=shop&pods=true" {
		t.Errorf("asked %v", got)
	}
}

func TestThroughAPortForward(t *testing.T) {
	for name, noSockets := range map[string]bool{"over WebSockets": false, "over SPDY where there are none": true} {
		t.Run(name, func(t *testing.T) {
			managers := map[string]*fakeManager{"m-1": newManager(t, 1, 0), "m-2": newManager(t, 2, 0)}
			c := newCluster(t, managers)
			c.noSockets = noSockets
			a, err := New(c.config(), Flags{Namespace: "kruise-system"})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			for range 3 {
				reply, warnings, err := a.Ask(t.Context(), web)
				if err != nil || len(warnings) > 0 || reply.Answer.Replica != "at 2" {
					t.Fatalf("got %+v, %v, %v", reply, warnings, err)
				}
			}
			if got := managers["m-1"].auth.Load(); got != "Bearer secret" {
				t.Errorf("it was shown %v", got)
			}
			sockets, spdy := c.sockets.Load(), c.spdy.Load()
			if noSockets && (sockets != 0 || spdy != 2) || !noSockets && (sockets != 2 || spdy != 0) {
				t.Errorf("%d forwards over WebSockets and %d over SPDY, want one for each manager", sockets, spdy)
			}
			managers["m-2"].CloseClientConnections()
			managers["m-2"].Listener.Close()
			reply, warnings, err := a.Ask(t.Context(), web)
			if err != nil || reply.Answer.Replica != "at 1" || len(warnings) != 1 || !strings.Contains(warnings[0].Error(), "connection refused") {
				t.Errorf("when one is gone: %+v, %v, %v", reply.Answer, warnings, err)
			}
		})
	}
}

func TestWhoMayNotForwardIsToldWhatIsNeeded(t *testing.T) {
	c := newCluster(t, map[string]*fakeManager{"m-1": newManager(t, 1, 0)})
	c.forbidden = true
	_, _, err := ask(t, c.config(), Flags{}, web)
	var no *ForbiddenError
	if !errors.As(err, &no) || !strings.Contains(err.Error(), "kruise-decision-reader") || !strings.Contains(err.Error(), "pods/portforward") {
		t.Errorf("got %v", err)
	}
}

func TestCertificates(t *testing.T) {
	service := &admissionv1.ServiceReference{Namespace: "example", Name: "com"} // httptest is example.com
	tests := []struct {
		name    string
		webhook func(*fakeManager) *admissionv1.WebhookClientConfig
		direct  bool
		want    string
		err     string
	}{
		{"a tunnel is trusted where the CA is not known", nil, false, "at 1", ""},
		{"a tunnel with the manager's certificate", func(m *fakeManager) *admissionv1.WebhookClientConfig {
			u := "https://example.com:443/x"
			return &admissionv1.WebhookClientConfig{CABundle: m.ca(), URL: &u}
		}, false, "at 1", ""},
		{"a tunnel with a certificate of another CA", func(*fakeManager) *admissionv1.WebhookClientConfig {
			u := "https://example.com"
			return &admissionv1.WebhookClientConfig{CABundle: selfSigned(t, "other").cert, URL: &u}
		}, false, "", "checking the certificate for example.com"},
		{"a tunnel with a certificate for another name", func(m *fakeManager) *admissionv1.WebhookClientConfig {
			return &admissionv1.WebhookClientConfig{CABundle: m.ca(), Service: service}
		}, false, "", "com.example.svc"},
		{"an endpoint with the manager's certificate", func(m *fakeManager) *admissionv1.WebhookClientConfig {
			u := "https://example.com"
			return &admissionv1.WebhookClientConfig{CABundle: m.ca(), URL: &u}
		}, true, "at 1", ""},
		{"an endpoint is not trusted where the CA is not known", nil, true, "", "checking the certificate for 127.0.0.1"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			m := newManager(t, 1, 0)
			c := newCluster(t, map[string]*fakeManager{"m": m})
			flags := Flags{}
			if tc.webhook != nil {
				c.webhook = tc.webhook(m)
			}
			if tc.direct {
				flags.Endpoints = []string{m.URL}
			}
			got, _, err := ask(t, c.config(), flags, web)
			if got != tc.want || (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("got %q, %v", got, err)
			}
			if err != nil && m.auth.Load() != nil {
				t.Error("it was shown the credentials all the same")
			}
		})
	}
}

type pair struct{ cert, key []byte }

func selfSigned(t *testing.T, name string) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
	}
}

func TestCredentials(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("of a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	jane := selfSigned(t, "jane")
	tests := []struct {
		name       string
		change     func(*rest.Config)
		auth, peer string
	}{
		{"a token", func(*rest.Config) {}, "Bearer secret", ""},
		{"the token in a file", func(c *rest.Config) { c.BearerToken, c.BearerTokenFile = "", token }, "Bearer of a file", ""},
		{"a client certificate", func(c *rest.Config) { c.BearerToken, c.CertData, c.KeyData = "", jane.cert, jane.key }, "", "jane"},
		{"a token that a plugin adds", func(c *rest.Config) {
			c.BearerToken = ""
			c.Wrap(func(rt http.RoundTripper) http.RoundTripper {
				return roundTripper(func(req *http.Request) (*http.Response, error) {
					req = req.Clone(req.Context())
					req.Header.Set("Authorization", "Bearer of a plugin")
					return rt.RoundTrip(req)
				})
			})
		}, "Bearer of a plugin", ""},
		{"a password, which no manager knows what to do with", func(c *rest.Config) { c.BearerToken, c.Username, c.Password = "", "jane", "x" }, "", ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			m := newManager(t, 1, 0)
			config := newCluster(t, map[string]*fakeManager{"m": m}).config()
			tc.change(config)
			if _, _, err := ask(t, config, Flags{}, web); err != nil {
				t.Fatal(err)
			}
			auth, _ := m.auth.Load().(string)
			peer, _ := m.peer.Load().(string)
			if auth != tc.auth || peer != tc.peer {
				t.Errorf("it was shown %q and the certificate of %q", auth, peer)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestWhatCannotBeAsked(t *testing.T) {
	tests := []struct {
		name   string
		change func(*rest.Config, *Flags)
		err    string
	}{
		{"as another user", func(c *rest.Config, _ *Flags) { c.Impersonate.UserName = "bob" }, "--as"},
		{"an endpoint without TLS", func(_ *rest.Config, f *Flags) { f.Endpoints = []string{"http://localhost:8443"} }, "want https://HOST:PORT"},
		{"an endpoint that is no URL", func(_ *rest.Config, f *Flags) { f.Endpoints = []string{"localhost:8443"} }, "want https://HOST:PORT"},
		{"managers where there are none", func(*rest.Config, *Flags) {}, "none is running in namespace kruise-system"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			config, flags := newCluster(t, nil).config(), Flags{}
			tc.change(config, &flags)
			if _, _, err := ask(t, config, flags, web); err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %v, want %q", err, tc.err)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	decided := func(s int64) explain.Answer { return explain.Answer{Decided: at(s)} }
	refused := func(s int64) explain.Answer { return explain.Answer{Decided: at(s), Request: &explain.Request{}} }
	for _, tc := range []struct {
		name    string
		replies []explain.Reply
		want    explain.Reply
	}{
		{"the newest answer, and the refusals of all, the latest first", []explain.Reply{
			{Answer: decided(1), Refusals: []explain.Answer{refused(5), refused(2)}}, {Answer: decided(4), Refusals: []explain.Answer{refused(3)}}, {},
		}, explain.Reply{Answer: decided(4), Refusals: []explain.Answer{refused(5), refused(3), refused(2)}}},
		{"a refusal is no answer where there is one", []explain.Reply{{Answer: refused(9)}, {Answer: decided(1)}},
			explain.Reply{Answer: decided(1), Refusals: []explain.Answer{refused(9)}}},
		{"else the latest of them is", []explain.Reply{{Answer: refused(2), Refusals: []explain.Answer{refused(1)}}, {Answer: refused(3)}},
			explain.Reply{Answer: refused(3), Refusals: []explain.Answer{refused(2), refused(1)}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, merge(tc.replies), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
