// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/test/apiserver"
)

// An API server that is configured as charts/kruise/README.md says presents its certificate to the webhook that its kubeconfig
// names, and to no other.
func TestTheAPIServerPresentsItsCertificate(t *testing.T) {
	ca := newAuthority(t)
	clients, err := NewClients(caFile(t, ca), []string{"front-proxy-client"})
	if err != nil {
		t.Fatal(err)
	}
	serve := func(path string) *httptest.Server {
		mux := http.NewServeMux()
		clients.VerifiedServer(webhook.NewServer(webhook.Options{WebhookMux: mux})).Register(path, &webhook.Admission{Handler: admission.HandlerFunc(
			func(_ context.Context, _ admission.Request) admission.Response { return admission.Allowed("") })})
		s := httptest.NewUnstartedServer(mux)
		s.TLS = &tls.Config{}
		clients.AskFor(s.TLS)
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	named, other := serve("/named"), serve("/other")
	env := apiserver.Start(t, func(env *envtest.Environment) {
		env.ControlPlane.GetAPIServer().Configure().Set("admission-control-config-file", admissionConfiguration(t, named.URL, ca.client(t, "front-proxy-client")))
	})
	c, err := client.New(env.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hook := func(name string, s *httptest.Server) registrationv1.ValidatingWebhook {
		return registrationv1.ValidatingWebhook{
			Name: name + ".kb.io", FailurePolicy: ptr.To(registrationv1.Fail), SideEffects: ptr.To(registrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			ClientConfig:   registrationv1.WebhookClientConfig{URL: ptr.To(s.URL + "/" + name), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})},
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"to": name}},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Create},
				Rule:       registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}
	}
	if err := c.Create(t.Context(), &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "both"}, Webhooks: []registrationv1.ValidatingWebhook{hook("named", named), hook("other", other)},
	}); err != nil {
		t.Fatal(err)
	}
	create := func(to string) error {
		return c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "c-", Labels: map[string]string{"to": to}}})
	}
	deadline := time.Now().Add(time.Minute)
	for err = create("other"); err == nil; err = create("other") { // the API server reads its webhooks late
		if time.Now().After(deadline) {
			t.Fatal("a webhook that requires a certificate let a request without one through")
		}
		time.Sleep(50 * time.Millisecond)
	}
	if !strings.Contains(err.Error(), `failed calling webhook "other.kb.io"`) {
		t.Error(err)
	}
	if err := create("named"); err != nil {
		t.Errorf("the API server did not get through with its certificate: %v", err)
	}
}

// admissionConfiguration is the file of an API server that presents the certificate to webhooks at the address.
func admissionConfiguration(t *testing.T, address string, certificate *tls.Certificate) string {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, content any) string {
		data, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	kubeconfig := write("webhooks.kubeconfig", map[string]any{
		"apiVersion": "v1", "kind": "Config",
		"users": []any{map[string]any{"name": at.Host, "user": map[string]any{
			"client-certificate-data": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}),
			"client-key-data":         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		}}},
	})
	var plugins []any
	for _, name := range []string{"ValidatingAdmissionWebhook", "MutatingAdmissionWebhook"} {
		plugins = append(plugins, map[string]any{"name": name, "configuration": map[string]any{
			"apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": kubeconfig,
		}})
	}
	return write("admission.yaml", map[string]any{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins})
}
