// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// ServeWebhooks makes the CRDs of the chart in an API server, has it ask the handlers about
// every write of their kinds, and has it convert versions at the path. The handlers are those
// of the manager, by their paths, and are served until the test ends. The CRDs are by kind.
func ServeWebhooks(t testing.TB, env *envtest.Environment, handlers map[string]http.Handler, convert string) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	hooks := configurations(CRDs(t, ""), handlers)
	if err := hooks.PrepWithoutInstalling(); err != nil {
		t.Fatal(err)
	}
	server := webhook.NewServer(webhook.Options{Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir})
	for path, handler := range handlers {
		server.Register(path, handler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serving webhooks: %v", err)
		}
	})
	url := "https://" + net.JoinHostPort(hooks.LocalServingHost, strconv.Itoa(hooks.LocalServingPort)) + convert
	all, kinds := CRDs(t, url), map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range all {
		if crd.Spec.Conversion != nil {
			crd.Spec.Conversion.Webhook.ClientConfig.CABundle = hooks.LocalServingCAData
		}
		kinds[crd.Spec.Names.Kind] = crd
	}
	began := time.Now()
	Install(t, env, all)
	t.Logf("the API server established %d CRDs in %s", len(all), time.Since(began).Round(10*time.Millisecond))
	if err := hooks.Install(env.Config); err != nil {
		t.Fatal(err)
	}
	return kinds
}

// configurations ask every handler about writes of its kind.
func configurations(crds []*apiextensionsv1.CustomResourceDefinition, handlers map[string]http.Handler) *envtest.WebhookInstallOptions {
	mutating := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	validating := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	for _, crd := range crds {
		names, group := crd.Spec.Names, strings.ReplaceAll(crd.Spec.Group, ".", "-")
		rules := []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{crd.Spec.Group}, APIVersions: []string{"*"}, Resources: []string{names.Plural}},
		}}
		config := func(path string) admissionv1.WebhookClientConfig {
			return admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "x", Name: "x", Path: &path}}
		}
		if path := "/mutate-" + group + "-" + names.Singular; handlers[path] != nil {
			mutating.Webhooks = append(mutating.Webhooks, admissionv1.MutatingWebhook{
				Name: "m" + names.Singular + ".kb.io", Rules: rules, ClientConfig: config(path), MatchPolicy: ptr.To(admissionv1.Exact),
				SideEffects: ptr.To(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"}, FailurePolicy: ptr.To(admissionv1.Fail),
			})
		}
		if path := "/validate-" + group + "-" + names.Singular; handlers[path] != nil {
			validating.Webhooks = append(validating.Webhooks, admissionv1.ValidatingWebhook{
				Name: "v" + names.Singular + ".kb.io", Rules: rules, ClientConfig: config(path), MatchPolicy: ptr.To(admissionv1.Exact),
				SideEffects: ptr.To(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"}, FailurePolicy: ptr.To(admissionv1.Fail),
			})
		}
	}
	return &envtest.WebhookInstallOptions{
		MutatingWebhooks: []*admissionv1.MutatingWebhookConfiguration{mutating}, ValidatingWebhooks: []*admissionv1.ValidatingWebhookConfiguration{validating},
	}
}
