// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policyv1beta1 "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/certs"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/steps"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/test/rules"
)

// protects writes what is protected as the service account of the manager does,
// with the permissions of the chart and no others.
func protects(t *testing.T, admin client.Client, config *rest.Config) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, policyv1beta1.AddToScheme, kruise.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:kruise-system:kruise-manager",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:kruise-system", "system:authenticated"},
	}
	manager, err := client.New(as, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	e := rules.Engine(t, "")
	writer := func(gates protection.Gates) *webhookconfig.Writer {
		enabled, err := steps.ListEnabled(func(f featuregate.Feature) bool {
			return f == features.PodUnavailableBudgetDeleteGate && gates.BudgetDelete || f == features.PodUnavailableBudgetUpdateGate && gates.BudgetUpdate
		}, steps.Needs{})
		if err != nil {
			t.Fatal(err)
		}
		return &webhookconfig.Writer{
			Client: manager, Live: manager, Rules: webhookconfig.NewRules(e, gates), Events: record.NewFakeRecorder(10), Now: time.Now,
			Undecided: prometheus.NewGauge(prometheus.GaugeOpts{Name: "undecided"}),
			Config: webhookconfig.Config{
				Namespace: "kruise-system", Pods: true, Created: enabled.CreatedMatches(), Stored: enabled.StoredMatches(), PodFailurePolicy: admissionv1.Ignore, TimeoutSeconds: 3,
			},
		}
	}
	for name, gates := range map[string]protection.Gates{"with nothing to protect": {}, "with everything": {Deletion: true, BudgetDelete: true, BudgetUpdate: true}} {
		if err := writer(gates).SyncConfigurations(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := writer(protection.Gates{Deletion: true, BudgetDelete: true})
	if err := w.CoverNamespace(t.Context(), "shop"); err != nil {
		t.Error(err)
	}
	hooks, twin := &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.ValidatingAdmissionPolicy{}
	for object, name := range map[client.Object]string{hooks: webhookconfig.ConfigurationName, twin: webhookconfig.PolicyName} {
		if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, object); err != nil {
			t.Fatal(err)
		}
	}
	if len(hooks.Webhooks) != 4 {
		t.Errorf("%d webhooks", len(hooks.Webhooks))
	}
	for _, hook := range hooks.Webhooks {
		if s := hook.ClientConfig.Service; s == nil || s.Name != "kruise-webhook-service" || *s.Port != 443 || len(hook.ClientConfig.CABundle) == 0 {
			t.Errorf("%s is called at %v", hook.Name, hook.ClientConfig)
		}
	}
	if len(twin.OwnerReferences) != 1 || twin.OwnerReferences[0].UID != hooks.UID {
		t.Errorf("the policy does not go with the release: %v", twin.OwnerReferences)
	}
	if err := writer(protection.Gates{}).SyncConfigurations(t.Context()); err != nil { // it may take the policy out
		t.Error(err)
	}
	if err := w.SyncConfigurations(t.Context()); err != nil {
		t.Error(err)
	}
	list := &admissionv1.ValidatingWebhookConfigurationList{}
	one := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", certs.ValidatingConfiguration)}
	if err := manager.List(t.Context(), list, one); err != nil || len(list.Items) != 1 {
		t.Errorf("looking for changes of one configuration: %d, %v", len(list.Items), err)
	}
	other := &admissionv1.ValidatingAdmissionPolicy{}
	other.Name = "other"
	if err := manager.Delete(t.Context(), other); !apierrors.IsForbidden(err) {
		t.Errorf("it may touch the policies of others: %v", err)
	}
}
