// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policyv1beta1 "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/certs"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

// newFaultScenario is an installation with a protected kind, a guard, a budget, a SidecarSet and a WorkloadSpread, and a claim of
// another replica for a SidecarSet that never comes.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	e, err := engine.New(fstest.MapFS{"protection/guards.rego": {Data: []byte(`package protection

guards := {
	"kinds": [{"group": "", "resource": "services"}],
	"guards": [{"rule": "r", "group": "", "resource": "configmaps", "operations": ["DELETE"]}],
}`)}}, engine.WithPatience(20)) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	set := &kruise.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	never := set.DeepCopy()
	never.Name, never.Spec.Selector.MatchLabels["app"] = "never", "never"
	claimed := false // in this run
	return faultinjection.Scenario{
		Applies: true,
		Groups:  []func(*runtime.Scheme) error{admissionv1.AddToScheme},
		Objects: []client.Object{
			&admissionv1.ValidatingWebhookConfiguration{
				ObjectMeta: metav1.ObjectMeta{Name: certs.ValidatingConfiguration},
				Webhooks:   []admissionv1.ValidatingWebhook{{Name: "vcloneset.kb.io", ClientConfig: service().WebhookClientConfig}},
			},
			&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName}},
			&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName}}, set,
			&policyv1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}},
			&kruise.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "web"}},
		},
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			claimed = false
			w := &Writer{
				Client: env.Client, Live: env.Client, Rules: NewRules(e, allGates()), Config: installation(), Events: env.Events, Now: env.Clock,
				Undecided: prometheus.NewGauge(prometheus.GaugeOpts{Name: "undecided"}),
			}
			return reconcile.Func((&Controller{Writer: w}).reconcileConfigs)
		},
		Others: func(c *faultinjection.Cluster) {
			if claimed {
				return
			}
			claimed = true
			replica := &Writer{Client: c.Client, Live: c.Client, Rules: NewRules(e, allGates()), Config: installation(), Now: func() time.Time { return c.Now }}
			c.Must(replica.AwaitSidecarSet(c.Context(), never))
		},
		Requests: []reconcile.Request{configRequest()},
		Delay:    3 * time.Minute, // the claim counts from when it is seen
		Quiet:    3 * time.Minute,
	}
}

func TestNoFailedCallLeavesAConfigurationBehind(t *testing.T) {
	newFaultScenario(t).Run(t)
}

func TestAConfigurationThatCannotBeWrittenIsReportedWhileItLasts(t *testing.T) {
	newFaultScenario(t).RunWait(t, faultinjection.Wait{
		Refuse: func(c faultinjection.Call) bool { return strings.HasSuffix(c.Kind, "WebhookConfiguration") },
		Tells:  "an admission webhook refuses it",
		Reaches: func(c *faultinjection.Cluster) string {
			validating := &admissionv1.ValidatingWebhookConfiguration{}
			c.Must(c.Client.Get(c.Context(), client.ObjectKey{Name: ConfigurationName}, validating))
			if len(validating.Webhooks) == 0 {
				return "there are no webhooks"
			}
			return ""
		},
	})
}
