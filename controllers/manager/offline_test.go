// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// between stands between a manager and the API server, and keeps paths away that
// start as the text does.
func between(t *testing.T, env *envtest.Environment) (kubeconfig []byte, broken *atomic.Value) {
	t.Helper()
	transport, err := rest.TransportFor(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(env.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport, proxy.FlushInterval = transport, -1
	broken = &atomic.Value{}
	broken.Store("none")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, broken.Load().(string)) {
			panic(http.ErrAbortHandler) // as a connection that breaks
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, server.URL), broken
}

const keepMaps = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"r1","operation":"DELETE","namespace":"shop","name":"m",
 "kind":{"version":"v1","kind":"ConfigMap"},"resource":{"version":"v1","resource":"configmaps"},"userInfo":{"username":"ann"},
 "oldObject":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"m","uid":"u"}}}}`

// review posts a review to the webhooks of a manager.
func review(t *testing.T, port, path, body string) string {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} // the CA is the manager's own
	resp, err := c.Post("https://localhost:"+port+path, "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(resp.StatusCode, " ", string(answer))
}

// A manager that starts while the API server cannot be asked, in part or at all,
// decides by what the one before it left on disk.
func TestAStartWithoutTheAPIServer(t *testing.T) {
	env := apiserver.Start(t)
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	apiserver.Install(t, env, apiserver.CRDs(t, "https://localhost:9443/convert"))
	hookURL, fail, none := "https://localhost:9443/x", admissionv1.Ignore, admissionv1.SideEffectClassNone
	bundle := &policyv1alpha1.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: "maps"}}
	bundle.Spec.Files = map[string]policyv1alpha1.FileText{"maps.rego": maps}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kruise-system"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-webhook-certs"}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kruise-mutating-webhook-configuration"}},
		&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "kruise-validating-webhook-configuration"},
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "vcloneset.kb.io", ClientConfig: admissionv1.WebhookClientConfig{URL: &hookURL}, FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			}},
		},
		bundle,
	} {
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig, broken := between(t, env)
	disk, certs := t.TempDir(), t.TempDir()
	start := func() (*process, string) {
		t.Helper()
		_, port, _ := strings.Cut(freeAddress(t), ":")
		return startManager(t, kubeconfig, []string{"WEBHOOK_PORT=" + port, "WEBHOOK_CERT_DIR=" + certs}, "--policy-dir="+disk), port
	}
	end := func(p *process) {
		t.Helper()
		if err := p.stop(); err != nil {
			t.Errorf("it ended with %v", err)
		}
	}
	decides := func(port string) bool {
		answer := review(t, port, webhookconfig.ValidateDeletionPath, keepMaps)
		return strings.Contains(answer, `"allowed":false`) && strings.Contains(answer, "Maps are kept.") && strings.Contains(answer, `"code":403`)
	}
	const bundles = "/apis/policy.kruise.io/v1alpha1/clusterpolicybundles"

	t.Run("without policies on disk it is not ready until the API server tells them", func(t *testing.T) {
		broken.Store(bundles)
		p, port := start()
		eventually(t, "the webhooks are served", func() bool {
			return strings.HasPrefix(review(t, port, webhookconfig.ValidateDeletionPath, keepMaps), "503 the policies are not loaded yet")
		})
		if code, body := p.get(p.health, "/readyz?verbose"); code == http.StatusOK {
			t.Errorf("it is ready: %s", body)
		}
		eventually(t, "a line about it", func() bool { return strings.Contains(p.text(), "there are none on disk") })
		if strings.HasPrefix(review(t, port, "/validate-apps-kruise-io-cloneset", `{}`), "503") {
			t.Error("nor are others served")
		}
		broken.Store("none")
		eventually(t, "ready", p.ready)
		eventually(t, "a bundle that was not published before decides", func() bool { return decides(port) })
		// The leader enforces a bundle before its status says so.
		eventually(t, "it is published", func() bool {
			b := &policyv1alpha1.ClusterPolicyBundle{}
			return api.Get(t.Context(), client.ObjectKeyFromObject(bundle), b) == nil && b.Status.Active != nil
		})
		end(p)
	})
	t.Run("what was published decides as soon as it is ready", func(t *testing.T) {
		p, port := start()
		eventually(t, "ready", p.ready)
		if !decides(port) {
			t.Error(review(t, port, webhookconfig.ValidateDeletionPath, keepMaps))
		}
		end(p)
	})
	t.Run("while bundles cannot be listed those on disk decide", func(t *testing.T) {
		broken.Store(bundles)
		p, port := start()
		eventually(t, "ready", p.ready)
		if !decides(port) || !strings.Contains(p.text(), "those on disk decide") {
			t.Error(review(t, port, webhookconfig.ValidateDeletionPath, keepMaps))
		}
		if err := api.Delete(t.Context(), bundle); err != nil {
			t.Fatal(err)
		}
		broken.Store("none")
		eventually(t, "the bundle that is gone decides no more", func() bool { return !decides(port) && p.ready() })
		bundle.ResourceVersion, bundle.UID = "", ""
		if err := api.Create(t.Context(), bundle); err != nil {
			t.Fatal(err)
		}
		eventually(t, "one that is new decides", func() bool { return decides(port) })
		end(p)
	})
	t.Run("while nothing answers deletions are decided, and the manager goes on when something does", func(t *testing.T) {
		broken.Store("/")
		p, port := start()
		eventually(t, "ready", p.ready)
		if !decides(port) {
			t.Error(review(t, port, webhookconfig.ValidateDeletionPath, keepMaps))
		}
		if got := review(t, port, webhookconfig.ValidatePodPath, "{}"); !strings.HasPrefix(got, "503 the API server does not answer") {
			t.Errorf("got %s", got)
		}
		broken.Store("none")
		eventually(t, "the manager", func() bool {
			return strings.Contains(p.text(), "The API server answers again") && p.leads() == "1" && p.ready()
		})
		if !decides(port) {
			t.Error(review(t, port, webhookconfig.ValidateDeletionPath, keepMaps))
		}
		end(p)
	})
	t.Run("while nothing answers the manager ends on a signal", func(t *testing.T) {
		broken.Store("/")
		p, _ := start()
		eventually(t, "ready", p.ready)
		end(p)
	})
}

// A process that ends before it listens has not failed.
func TestServingEndsBeforeItBegins(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := serveUntil(ended, "127.0.0.1:0", http.NewServeMux(), nil); err != nil {
		t.Error(err)
	}
	if err := serveUntil(t.Context(), "256.0.0.1:0", http.NewServeMux(), nil); err == nil {
		t.Error("an address that cannot be had is no error")
	}
}
