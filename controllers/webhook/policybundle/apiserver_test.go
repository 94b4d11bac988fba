// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/test/apiserver"
)

const manifest = `apiVersion: policy.kruise.io/v1alpha1
kind: ClusterPolicyBundle
metadata: {name: NAME}
spec:
  files:
    a.rego: |
      package extend.rollout.a

      hold contains {"reason": "R", "message": "m"} if input.strategy.maxUnavaliable > 1
    b.rego: |
      package extend.rollout.b

      hold contains {"reason": "R", "message": "m"} if input.updaet > 1
`

func TestKubectlApplyIsRefusedAtThePlace(t *testing.T) {
	env, c := apiserver.Serve(t)
	mux := http.NewServeMux()
	mux.Handle("/bundles", &webhook.Admission{Handler: NewPlatform(newJudge(t, gate.InProcess{})).ValidatingHandler()})
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	if err := c.Create(t.Context(), &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "bundles"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "vclusterpolicybundle.kb.io", FailurePolicy: ptr.To(admissionv1.Ignore), SideEffects: ptr.To(admissionv1.SideEffectClassNone),
			TimeoutSeconds: ptr.To[int32](30), AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionv1.WebhookClientConfig{URL: ptr.To(server.URL + "/bundles"), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{"policy.kruise.io"}, APIVersions: []string{"*"}, Resources: []string{"clusterpolicybundles"}},
			}},
		}},
	}); err != nil {
		t.Fatal(err)
	}
	user, err := env.AddUser(envtest.User{Name: "ann", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := user.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	apply := func(name string, args ...string) (string, error) {
		file := filepath.Join(t.TempDir(), name+".yaml")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(manifest, "NAME", name)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, text, err := kubectl.Run(append([]string{"apply", "-f", file}, args...)...)
		if err == nil {
			return "", nil
		}
		said, unread := io.ReadAll(text)
		if unread != nil {
			t.Fatal(unread)
		}
		return string(said), err
	}
	apiserver.Eventually(t, "the API server does not ask the webhook", func() string {
		if _, err := apply("tried", "--dry-run=server"); err == nil {
			return "it is taken"
		}
		return ""
	})
	const want = `The ClusterPolicyBundle "NAME" is invalid: 
* spec.files[a.rego]: Invalid value: a.rego:3:50 rego_type_error undefined ref: input.strategy.maxUnavaliable`
	for name, args := range map[string][]string{"stored": nil, "tried": {"--dry-run=server"}, "server-side": {"--server-side"}} {
		said, err := apply(name, args...)
		if err == nil || !regexp.MustCompile(`(?m)^\* spec\.files\[b\.rego\]: Invalid value: b\.rego:3:50 rego_type_error undefined ref: input\.updaet`).MatchString(said) ||
			!strings.Contains(said, strings.ReplaceAll(want, "NAME", name)) {
			t.Errorf("%s: %v, kubectl says\n%s", name, err, said)
		}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, &policy.ClusterPolicyBundle{}); err == nil {
			t.Errorf("%s is stored", name)
		}
	}
	server.Close()
	if said, err := apply("unasked"); err != nil {
		t.Errorf("while the webhook does not answer kubectl says %s", said)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "unasked"}, &policy.ClusterPolicyBundle{}); err != nil {
		t.Error(err)
	}
}
