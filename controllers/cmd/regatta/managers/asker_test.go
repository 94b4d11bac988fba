// SPDX-License-Identifier: Apache-2.0

package managers

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

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/controllers/explain"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

var web = Question{Kind: "Pod", Namespace: "shop", Name: "web-1"}

func ask(t *testing.T, config *rest.Config, flags Flags, q Question) (string, []error, error) {
	t.Helper()
	a, err := New(config, flags)
	if err != nil {
		return "", nil, err
	}
	reply, warnings, err := a.FetchExplanation(t.Context(), q)
	return reply.Answer.Replica, warnings, err
}

func TestTheNewestAnswerOfEndpointsWins(t *testing.T) {
	tests := []struct {
		name     string
		managers map[int64]int // when they decided, and the code they refuse with
		want     string
		warnings int
		err      []string
	}{
		{"of two that have decided", map[int64]int{10: 0, 20: 0}, "at 20", 2, nil},
		{"the one that leads knows, another does not", map[int64]int{10: 0, 20: http.StatusNotFound}, "at 10", 1, nil},
		{"one that fails is a warning", map[int64]int{10: 0, 20: http.StatusInternalServerError}, "at 10", 2, nil},
		{"one that refuses is a warning", map[int64]int{10: 0, 20: notAllowed}, "at 10", 2, nil},
		{"none has decided", map[int64]int{10: http.StatusNotFound, 20: http.StatusNotFound}, "", 0, []string{"no manager has decided anything about Pod shop/web-1"}},
		{"none knows who asks", map[int64]int{10: http.StatusUnauthorized}, "", 0, []string{"log in again"}},
		{"none may tell", map[int64]int{10: notAllowed, 20: notAllowed}, "", 0, []string{"jane may not get it. Only users who may get the object itself may ask why something was decided"}},
		{"all fail", map[int64]int{10: http.StatusInternalServerError}, "", 0, []string{"that is no answer"}},
		{"it is something else that answers", map[int64]int{10: http.StatusTeapot}, "", 0, []string{"is hardly a manager"}},
		{"it redirects, and gets no credentials a second time", map[int64]int{10: http.StatusFound}, "", 0, []string{"it redirects"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, nil)
			flags := Flags{Insecure: true}
			for decided, code := range tc.managers {
				flags.Endpoints = append(flags.Endpoints, newManager(t, decided, code).URL)
			}
			got, warnings, err := ask(t, c.config(), flags, web)
			if got != tc.want || len(warnings) != tc.warnings || !contains(err, tc.err...) {
				t.Errorf("got %q, warnings %v, error %v", got, warnings, err)
			}
		})
	}
}

func TestASlowManagerHoldsNobodyUp(t *testing.T) {
	c := newCluster(t, nil)
	config := c.config()
	config.Timeout = 3 * time.Second // the other one must answer in it
	flags := Flags{Insecure: true, Endpoints: []string{newManager(t, 1, 0).URL, newManager(t, 2, hangs).URL}}
	got, warnings, err := ask(t, config, flags, web)
	if got != "at 1" || len(warnings) != 2 || err != nil || !errors.Is(warnings[1], context.DeadlineExceeded) {
		t.Errorf("got %q, %v, %v", got, warnings, err)
	}
}

// What it takes to be told is said where it is not there.
func TestThroughTheAPIServer(t *testing.T) {
	set := Question{Kind: "CloneSet", Group: "apps.kruise.io", Namespace: "shop", Name: "web", Pods: true, Nearest: true}
	tests := []struct {
		name  string
		q     Question
		code  int
		asked string
		err   []string
	}{
		{"about a pod", web, 0, "/namespaces/shop/explanations/web-1?kind=Pod", nil},
		{"about a workload with its pods", set, 0, "/namespaces/shop/explanations/web?group=apps.kruise.io&kind=CloneSet&nearest=true&pods=true", nil},
		{"about what is in no namespace", Question{Resource: "clusterroles.rbac.authorization.k8s.io", Name: "system:x"}, 0, "/clusterexplanations/system:x?resource=clusterroles.rbac.authorization.k8s.io", nil},
		{"about a request", Question{Request: "u-1"}, 0, "/refusals?request=u-1", nil},
		{"about the requests of a user in a namespace", Question{User: "system:serviceaccount:a:b", Namespace: "shop"}, 0, "/namespaces/shop/refusals?user=system%3Aserviceaccount%3Aa%3Ab", nil},
		{"nothing was decided", web, http.StatusNotFound, "", []string{"no manager has decided anything about Pod shop/web-1"}},
		{"nothing was refused", Question{Request: "u-1"}, http.StatusNotFound, "", []string{"no manager remembers refusing anything about request u-1"}},
		{"whose credentials are not valid", web, http.StatusUnauthorized, "", []string{"the API server does not know you", "log in again"}},
		{"who may not ask in the namespace", web, http.StatusForbidden, "", []string{"kubectl -n NAMESPACE create rolebinding decision-readers --clusterrole=kruise-decision-reader"}},
		{"who may not ask about requests", Question{User: "bob"}, http.StatusForbidden, "", []string{"name it with -n", "kruise-decision-reader"}},
		{"who may not ask in the whole cluster", Question{Resource: "namespaces", Name: "shop"}, http.StatusForbidden, "", []string{"kubectl create clusterrolebinding decision-readers --clusterrole=kruise-decision-reader"}},
		{"who may not get the pod", web, notAllowed, "", []string{"Only users who may get the object itself"}},
		{"while no manager runs", web, http.StatusServiceUnavailable, "", []string{"the API decisions.kruise.io is not available", "kubectl get apiservice v1alpha1.decisions.kruise.io"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			m := newManager(t, 1, tc.code)
			got, warnings, err := ask(t, newCluster(t, m).config(), Flags{}, tc.q)
			if !contains(err, tc.err...) {
				t.Fatalf("got %v", err)
			}
			if tc.err == nil && (got != "at 1" || m.query.Load() != explain.APIPath+tc.asked || len(warnings) != 1 || !contains(warnings[0], "asking another one: no answer")) {
				t.Errorf("got %q, %v, asked %v", got, warnings, m.query.Load())
			}
		})
	}
	_, _, err := ask(t, newCluster(t, nil).config(), Flags{}, web)
	if !contains(err, "it has no API decisions.kruise.io", "manager.decisions.apiService.enabled=true", "--endpoint") {
		t.Errorf("where the API is not installed: %v", err)
	}
}

func TestCertificatesOfEndpoints(t *testing.T) {
	service := &admissionv1.ServiceReference{Namespace: "example", Name: "com"} // httptest is example.com
	tests := []struct {
		name    string
		webhook func(*fakeManager) *admissionv1.WebhookClientConfig
		want    string
		err     []string
	}{
		{"the manager's own certificate", func(m *fakeManager) *admissionv1.WebhookClientConfig {
			u := "https://example.com"
			return &admissionv1.WebhookClientConfig{CABundle: m.ca(), URL: &u}
		}, "at 1", nil},
		{"one of another CA", func(*fakeManager) *admissionv1.WebhookClientConfig {
			u := "https://example.com"
			return &admissionv1.WebhookClientConfig{CABundle: selfSigned(t, "other").cert, URL: &u}
		}, "", []string{"checking the certificate for example.com"}},
		{"one for another name", func(m *fakeManager) *admissionv1.WebhookClientConfig {
			return &admissionv1.WebhookClientConfig{CABundle: m.ca(), Service: service}
		}, "", []string{"com.example.svc"}},
		{"any, where the CA is not known", nil, "", []string{"checking the certificate for 127.0.0.1"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			m, c := newManager(t, 1, 0), newCluster(t, nil)
			if tc.webhook != nil {
				c.webhook = tc.webhook(m)
			}
			got, _, err := ask(t, c.config(), Flags{Endpoints: []string{m.URL}}, web)
			if got != tc.want || !contains(err, tc.err...) {
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

func TestCredentialsForEndpoints(t *testing.T) {
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
			config := newCluster(t, nil).config()
			tc.change(config)
			if _, _, err := ask(t, config, Flags{Insecure: true, Endpoints: []string{m.URL}}, web); err != nil {
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
		{"an endpoint as another user", func(c *rest.Config, f *Flags) {
			c.Impersonate.UserName, f.Endpoints = "bob", []string{"https://localhost:8443"}
		}, "impersonation does not go with --endpoint"},
		{"an endpoint without TLS", func(_ *rest.Config, f *Flags) { f.Endpoints = []string{"http://localhost:8443"} }, "want https://HOST:PORT"},
		{"an endpoint that is no URL", func(_ *rest.Config, f *Flags) { f.Endpoints = []string{"localhost:8443"} }, "want https://HOST:PORT"},
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
