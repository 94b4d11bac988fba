// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.certificate, a.key = a.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *authority) sign(t *testing.T, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	template.NotBefore = template.NotAfter.Add(-24 * time.Hour)
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

func (a *authority) client(t *testing.T, name string, edits ...func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, edit := range edits {
		edit(template)
	}
	certificate, key := a.sign(t, template)
	return &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// caFile has the certificates of authorities.
func caFile(t *testing.T, authorities ...*authority) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.crt")
	writeCAs(t, path, authorities...)
	return path
}

func writeCAs(t *testing.T, path string, authorities ...*authority) {
	t.Helper()
	var content []byte
	for _, a := range authorities {
		content = append(content, a.pem()...)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// serveVerified serves a webhook, conversion and health to clients that are verified; all answer 418.
func serveVerified(t *testing.T, clients *Clients) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	server := clients.VerifiedServer(webhook.NewServer(webhook.Options{WebhookMux: mux}))
	for _, path := range []string{"/validate-pod", ConvertPath, HealthPath} {
		server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	}
	s := httptest.NewUnstartedServer(mux)
	s.TLS = &tls.Config{}
	clients.AskFor(s.TLS)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, s *httptest.Server, path string, certificate *tls.Certificate) (int, string) {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get(s.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestWebhooksTakeRequestsOfTheAPIServerOnly(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	clients, err := NewClients(caFile(t, ours), []string{"kube-apiserver", "front-proxy-client"})
	if err != nil {
		t.Fatal(err)
	}
	s := serveVerified(t, clients)
	old := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	serving := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	for _, tc := range []struct {
		name        string
		path        string
		certificate *tls.Certificate
		code        int
		says        string
	}{
		{"the API server", "/validate-pod", ours.client(t, "kube-apiserver"), http.StatusTeapot, ""},
		{"the API server by another name", "/validate-pod", ours.client(t, "front-proxy-client"), http.StatusTeapot, ""},
		{"a client without a certificate", "/validate-pod", nil, http.StatusUnauthorized, "AdmissionConfiguration"},
		{"a client of the same CA", "/validate-pod", ours.client(t, "system:node:a"), http.StatusForbidden, "cn=system:node:a is not in the allowed list"},
		{"a client of another CA", "/validate-pod", others.client(t, "kube-apiserver"), http.StatusForbidden, "unknown authority"},
		{"a certificate that has expired", "/validate-pod", ours.client(t, "kube-apiserver", old), http.StatusForbidden, "expired"},
		{"a certificate of a server", "/validate-pod", ours.client(t, "kube-apiserver", serving), http.StatusForbidden, "incompatible key usage"},
		{"a conversion, which the API server asks for without a certificate", ConvertPath, nil, http.StatusTeapot, ""},
		{"a probe", HealthPath, nil, http.StatusTeapot, ""},
	} {
		code, body := get(t, s, tc.path, tc.certificate)
		if code != tc.code || !strings.Contains(body, tc.says) {
			t.Errorf("%s got %d: %s", tc.name, code, body)
		}
	}
	registry := prometheus.NewRegistry()
	if err := clients.RegisterMetric(registry); err != nil {
		t.Fatal(err)
	}
	if err := testutil.CollectAndCompare(clients.refused, strings.NewReader(`# HELP regatta_webhook_clients_refused_total Requests to webhooks without a valid client certificate of the API server, by whether it was missing or invalid.
# TYPE regatta_webhook_clients_refused_total counter
regatta_webhook_clients_refused_total{certificate="invalid"} 4
regatta_webhook_clients_refused_total{certificate="missing"} 1
`)); err != nil {
		t.Error(err)
	}
}

func TestClientsOfAnyNameAreTakenIfNoneIsSet(t *testing.T) {
	ours := newAuthority(t)
	clients, err := NewClients(caFile(t, ours), nil)
	if err != nil {
		t.Fatal(err)
	}
	if code, body := get(t, serveVerified(t, clients), "/validate-pod", ours.client(t, "anything")); code != http.StatusTeapot {
		t.Errorf("got %d: %s", code, body)
	}
}

func TestWithoutACAAllClientsAreTaken(t *testing.T) {
	var clients *Clients
	if code, body := get(t, serveVerified(t, clients), "/validate-pod", nil); code != http.StatusTeapot {
		t.Errorf("got %d: %s", code, body)
	}
}

func TestAnotherCAIsFollowed(t *testing.T) {
	first, second := newAuthority(t), newAuthority(t)
	path := caFile(t, first)
	clients, err := NewClients(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	go clients.WatchCA(t.Context())
	s := serveVerified(t, clients)
	certificate := second.client(t, "kube-apiserver")
	if code, _ := get(t, s, "/validate-pod", certificate); code != http.StatusForbidden {
		t.Fatalf("before: %d", code)
	}
	deadline := time.Now().Add(time.Minute)
	for writeCAs(t, path, first, second); ; time.Sleep(20 * time.Millisecond) {
		code, body := get(t, s, "/validate-pod", certificate)
		if code == http.StatusTeapot {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after: %d, %s", code, body)
		}
	}
}

func TestACAThatCannotBeReadIsAnError(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{empty, empty + ".missing"} {
		if _, err := NewClients(path, nil); err == nil || !strings.Contains(err.Error(), "reading the CA of the clients of webhooks") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
