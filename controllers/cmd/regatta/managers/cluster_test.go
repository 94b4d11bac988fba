// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/replicas"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

// fakeManager serves an answer over TLS, or a refusal.
type fakeManager struct {
	*httptest.Server
	decided time.Time
	code    int // of a refusal
	auth    atomic.Value
	peer    atomic.Value
	query   atomic.Value
	records []decision.Record
}

func newManager(t *testing.T, decided int64, code int) *fakeManager {
	t.Helper()
	m := &fakeManager{decided: time.Unix(decided, 0).UTC(), code: code}
	m.Server = httptest.NewUnstartedServer(m)
	m.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	m.Config.ErrorLog = quiet()
	m.StartTLS()
	t.Cleanup(m.Close)
	return m
}

// Codes of fakeManager that are no answers of a manager.
const (
	notAllowed = -iota - 1
	hangs
)

func (m *fakeManager) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	m.auth.Store(req.Header.Get("Authorization"))
	m.query.Store(req.URL.RequestURI())
	if len(req.TLS.PeerCertificates) > 0 {
		m.peer.Store(req.TLS.PeerCertificates[0].Subject.CommonName)
	}
	if m.code == 0 && req.URL.Path == explain.APIPath+"/decisions" {
		if n := m.decided.Unix(); n > 0 {
			replicas.AddWarning(w.Header(), fmt.Sprintf("m remembers %d older decisions", n))
		}
		_ = record.Write(w, m.records)
		return
	}
	status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Details: &metav1.StatusDetails{Group: explain.Group}}
	switch m.code {
	case 0:
		replicas.AddWarning(w.Header(), "asking another one: no answer")
		write(w, http.StatusOK, explain.Reply{Answer: explain.Answer{Verdict: explain.Held, Decided: m.decided, Replica: fmt.Sprint("at ", m.decided.Unix())}})
	case http.StatusFound:
		http.Redirect(w, req, "/elsewhere", m.code)
	case http.StatusTeapot, http.StatusServiceUnavailable:
		http.Error(w, "<html>", m.code)
	case hangs:
		<-req.Context().Done()
	case notAllowed: // what is asked about
		status.Code, status.Reason, status.Details.Group, status.Message = http.StatusForbidden, metav1.StatusReasonForbidden, "", "jane may not get it"
		write(w, http.StatusForbidden, status)
	default:
		status.Code, status.Message = int32(m.code), "that is no answer"
		status.Reason = map[int]metav1.StatusReason{404: metav1.StatusReasonNotFound, 403: metav1.StatusReasonForbidden, 401: metav1.StatusReasonUnauthorized}[m.code]
		write(w, m.code, status)
	}
}

// ca is the certificate of the manager, which signs itself.
func (m *fakeManager) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.Certificate().Raw})
}

// fakeCluster is as much of an API server as asking takes: it knows the CA, and passes on
// requests for the API to the manager, if there is one.
type fakeCluster struct {
	*httptest.Server
	webhook *admissionv1.WebhookClientConfig
}

func newCluster(t *testing.T, m *fakeManager) *fakeCluster {
	t.Helper()
	c := &fakeCluster{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /base/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/"+webhooks, c.configuration)
	if m != nil {
		mux.Handle("GET /base"+explain.APIPath+"/", http.StripPrefix("/base", m))
	}
	c.Server = httptest.NewUnstartedServer(mux)
	c.Config.ErrorLog = quiet()
	c.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	c.StartTLS()
	t.Cleanup(c.Close)
	return c
}

// config has a path, as that of an API server behind a proxy may.
func (c *fakeCluster) config() *rest.Config {
	return &rest.Config{Host: c.URL + "/base", BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw}),
	}}
}

func (c *fakeCluster) configuration(w http.ResponseWriter, _ *http.Request) {
	if c.webhook == nil {
		write(w, http.StatusForbidden, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: 403, Reason: metav1.StatusReasonForbidden})
		return
	}
	write(w, http.StatusOK, admissionv1.ValidatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		Webhooks: []admissionv1.ValidatingWebhook{{Name: "x", ClientConfig: *c.webhook}},
	})
}

func write(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

// contains reports whether an error has all texts; no text is no error.
func contains(err error, texts ...string) bool {
	if err == nil || len(texts) == 0 {
		return err == nil && len(texts) == 0
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			return false
		}
	}
	return true
}
