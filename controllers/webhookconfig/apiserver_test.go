// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1beta1 "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/certs"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// What the API server sends: only what a budget or a rule can be about.
func TestWhatIsSent(t *testing.T) {
	_, api := apiServer.Serve(t)
	s := listen(t)
	for name, labels := range map[string]map[string]string{"shop": nil, "plain": nil, "switched": {SwitchKey: SwitchOff}, "kruise-system": nil} {
		create(t, api, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	for _, ns := range []string{"shop", "plain", "switched", "kruise-system", "kube-system", "default"} {
		create(t, api, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "default"}})
	}
	chart(t, api, admissionv1.WebhookClientConfig{URL: ptr.To(s.URL + "/validate-apps-kruise-io-cloneset"), CABundle: s.ca()})
	rules := policies(t, allGates(), `{
		"kinds": [{"group": "", "resource": "services"}, {"group": "apps", "resource": "deployments", "cascading": "replicas"}],
		"guards": [
			{"rule": "gold", "group": "", "resource": "configmaps", "operations": ["DELETE", "UPDATE"], "namespaces": ["shop", "kube-system", "switched"], "labels": {"tier": "gold", "x.io/it": ""}},
			{"rule": "gold", "group": "", "resource": "services", "operations": ["DELETE"]},
			{"rule": "odd", "group": "", "resource": "secrets", "operations": ["DELETE"], "labels": {"a'] == '' || true || x['": "b\\"}},
		],
	}`)
	w, _ := newWriter(api, rules)
	for _, ns := range []string{"shop", "switched", "kruise-system", "kube-system"} {
		if err := w.CoverNamespace(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
	}
	budget := map[string]string{"pub.kruise.io/related-pub": "web"}
	eventually(t, "the API server knows its webhooks", func() bool {
		probe := pod("shop", "probe", nil)
		create(t, api, probe)
		err := api.SubResource("eviction").Create(t.Context(), probe, &policyv1.Eviction{})
		if err != nil {
			t.Fatal(err)
		}
		calls := s.since()
		return slices.Contains(calls, "/validate-pod CREATE pods/eviction shop probe") && slices.Contains(calls, "/mutate-pod CREATE pods shop probe")
	})

	n := 0
	made := func(ns string, annotations map[string]string, ready bool, change func(*corev1.Pod)) *corev1.Pod {
		t.Helper()
		n++
		p := pod(ns, fmt.Sprintf("web-%d", n), annotations)
		if change != nil {
			change(p)
		}
		create(t, api, p)
		if ready {
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			if err := api.Status().Update(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		s.since()
		return p
	}
	deleted := func(p client.Object) error { return api.Delete(t.Context(), p) }
	updated := func(change func(*corev1.Pod)) func(client.Object) error {
		return func(o client.Object) error {
			change(o.(*corev1.Pod))
			return api.Update(t.Context(), o)
		}
	}
	labelled := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels[key] = value }
	}
	configMap := func(ns string, labels map[string]string) *corev1.ConfigMap {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "c-", Labels: labels}}
		create(t, api, o)
		return o
	}
	serviceOf := func(ns, value string) *corev1.Service {
		o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "s-"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		if value != "" {
			o.Labels = map[string]string{"policy.kruise.io/delete-protection": value}
		}
		create(t, api, o)
		return o
	}
	deploymentOf := func(value string) *appsv1.Deployment {
		o := deployment("shop", "d-")
		o.Name, o.GenerateName = "", "d-"
		o.Labels = map[string]string{"policy.kruise.io/delete-protection": value}
		create(t, api, o)
		return o
	}
	gold := map[string]string{"tier": "gold", "x.io/it": ""}
	for _, tc := range []struct {
		name string
		of   client.Object
		do   func(client.Object) error
		want string // path, operation and resource; empty if nothing is sent
	}{
		{"a pod of a budget", made("shop", budget, true, nil), deleted, "/validate-pod DELETE pods"},
		{"by the older annotation", made("shop", map[string]string{"kruise.io/related-pub": "web"}, true, nil), deleted, "/validate-pod DELETE pods"},
		{"a pod without a budget", made("shop", map[string]string{"a": "b"}, true, nil), deleted, ""},
		{"a pod without annotations", made("shop", nil, true, nil), deleted, ""},
		{"a pod that says that it needs no protection", made("shop", map[string]string{"pub.kruise.io/related-pub": "web", "pub.kruise.io/no-protect": "true"}, true, nil), deleted, ""},
		{"a pod that says it wrong", made("shop", map[string]string{"pub.kruise.io/related-pub": "web", "pub.kruise.io/no-protect": "yes"}, true, nil), deleted, "/validate-pod DELETE pods"},
		{"a pod that is not ready", made("shop", budget, false, nil), deleted, ""},
		{"a pod of kube-system", made("kube-system", budget, true, nil), deleted, ""},
		{"a pod of our namespace", made("kruise-system", budget, true, nil), deleted, ""},
		{"a pod of a namespace that is switched off", made("switched", budget, true, nil), deleted, ""},
		{"a status", made("shop", budget, true, nil), func(o client.Object) error {
			o.(*corev1.Pod).Status.Message = "x"
			return api.Status().Update(t.Context(), o)
		}, ""},
		{"labels and annotations", made("shop", budget, true, nil), updated(labelled("b", "c")), ""},
		{"an image", made("shop", budget, true, nil), updated(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "nginx:2" }), "/validate-pod UPDATE pods"},
		{"a label that makes a pod unavailable", made("shop", budget, true, nil), updated(labelled("unavailable-pod.kruise.io/x", "")), "/validate-pod UPDATE pods"},
		{"one that was there", made("shop", budget, true, labelled("unavailable-pod.kruise.io/x", "")), updated(labelled("unavailable-pod.kruise.io/x", "y")), ""},
		{"an image of a pod without a budget", made("shop", nil, true, nil), updated(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "nginx:2" }), ""},
		{"a resize", made("shop", budget, true, nil), func(o client.Object) error {
			p := o.(*corev1.Pod)
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("200m")
			return api.SubResource("resize").Update(t.Context(), p)
		}, "/validate-pod UPDATE pods/resize"},
		{"an eviction where there are budgets", made("shop", nil, false, nil), func(o client.Object) error {
			return api.SubResource("eviction").Create(t.Context(), o, &policyv1.Eviction{})
		}, "/validate-pod CREATE pods/eviction"},
		{"an eviction where there are none", made("plain", budget, true, nil), func(o client.Object) error {
			return api.SubResource("eviction").Create(t.Context(), o, &policyv1.Eviction{})
		}, ""},
		{"a pod that is going", made("shop", budget, true, func(p *corev1.Pod) { p.Finalizers = []string{"x.io/y"} }), func(o client.Object) error {
			if err := deleted(o); err != nil {
				return err
			}
			// The API server asks about the pod that its own cache has.
			apiserver.Eventually(t, "the cache of the API server has the deletion", func() string {
				cached := &corev1.PodList{}
				if err := api.List(t.Context(), cached, client.InNamespace(o.GetNamespace()), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}); err != nil {
					return err.Error()
				}
				if !slices.ContainsFunc(cached.Items, func(p corev1.Pod) bool { return p.UID == o.GetUID() && p.DeletionTimestamp != nil }) {
					return "it does not"
				}
				return ""
			})
			s.since()
			return deleted(o)
		}, ""},
		{"a new pod where there are no budgets", pod("plain", "new", nil), func(o client.Object) error { return api.Create(t.Context(), o) }, ""},
		{"a new pod where there are budgets", pod("shop", "new", nil), func(o client.Object) error { return api.Create(t.Context(), o) }, "/mutate-pod CREATE pods"},
		{"a new pod of our workloads", owned(pod("plain", "owned", nil), "apps.kruise.io/v1beta1"), func(o client.Object) error { return api.Create(t.Context(), o) }, "/mutate-pod CREATE pods"},
		{"one that has the readiness gate already", func() client.Object {
			p := owned(pod("plain", "gated", nil), "apps.kruise.io/v1beta1")
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "KruisePodReady"}}
			return p
		}(), func(o client.Object) error { return api.Create(t.Context(), o) }, ""},
		{"a new pod of others' workloads", owned(pod("plain", "others", nil), "apps/v1"), func(o client.Object) error { return api.Create(t.Context(), o) }, ""},
		{"a new pod of ours where it is switched off", owned(pod("switched", "owned", nil), "apps.kruise.io/v1beta1"), func(o client.Object) error { return api.Create(t.Context(), o) }, ""},
		{"a kind that a label always protects", serviceOf("plain", "Always"), deleted, "/validate-deletion DELETE services"},
		{"a kind that Cascading says nothing about, for the user's rule", serviceOf("plain", "Cascading"), deleted, "/validate-deletion DELETE services"},
		{"one without a label, for the user's rule", serviceOf("plain", ""), deleted, "/validate-deletion DELETE services"},
		{"one of kube-system", serviceOf("kube-system", "Always"), deleted, ""},
		{"one where it is switched off", serviceOf("switched", "Always"), deleted, ""},
		{"a workload whose label says Always", deploymentOf("Always"), deleted, "/validate-deletion DELETE deployments"},
		{"a workload whose label says Cascading", deploymentOf("Cascading"), deleted, "/validate-deletion DELETE deployments"},
		{"a workload with another value", deploymentOf("always"), deleted, ""},
		{"what a user's rule is about", configMap("shop", gold), deleted, "/validate-deletion DELETE configmaps"},
		{"what lacks one of its labels", configMap("shop", map[string]string{"tier": "gold"}), deleted, ""},
		{"what has another value", configMap("shop", map[string]string{"tier": "gold", "x.io/it": "x"}), deleted, ""},
		{"what has no labels", configMap("shop", nil), deleted, ""},
		{"what is elsewhere", configMap("plain", gold), deleted, ""},
		{"what is in kube-system though the rule names it", configMap("kube-system", gold), deleted, ""},
		{"what is where it is switched off though the rule names it", configMap("switched", gold), deleted, ""},
		{"a rule with an odd label", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x", Labels: gold}}, func(o client.Object) error {
			create(t, api, o)
			s.since()
			return deleted(o)
		}, ""},
	} {
		s.since()
		if err := tc.do(tc.of); err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		var got []string
		for _, call := range s.since() {
			got = append(got, strings.Join(strings.Fields(call)[:3], " "))
		}
		// Where its cache was behind, the API server tries again, and asks again.
		if got = slices.Compact(got); strings.Join(got, ", ") != tc.want {
			t.Errorf("%s: sent %q, want %q", tc.name, got, tc.want)
		}
	}

	t.Run("nothing is written that is written already", func(t *testing.T) {
		was := versions(t, api)
		if err := w.SyncConfigurations(t.Context()); err != nil {
			t.Fatal(err)
		}
		if is := versions(t, api); is != was {
			t.Errorf("versions were %s and are %s", was, is)
		}
	})
	t.Run("changes by another client to managed fields are undone, and its own fields stay", func(t *testing.T) {
		v := &admissionv1.ValidatingWebhookConfiguration{}
		get(t, api, ConfigurationName, v)
		v.Webhooks[0].FailurePolicy = ptr.To(admissionv1.Fail)
		v.Annotations = map[string]string{"somebody": "else"}
		if err := api.Update(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		if err := w.SyncConfigurations(t.Context()); err != nil {
			t.Fatal(err)
		}
		get(t, api, ConfigurationName, v)
		if *v.Webhooks[0].FailurePolicy != admissionv1.Ignore || v.Annotations["somebody"] != "else" || v.Labels["a"] != "b" {
			t.Errorf("it is %s, %v, %v", *v.Webhooks[0].FailurePolicy, v.Annotations, v.Labels)
		}
	})
	t.Run("another CA is taken over", func(t *testing.T) {
		c, v := &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
		get(t, api, certs.ValidatingConfiguration, c)
		other := slices.Concat(s.ca(), listen(t).ca())
		c.Webhooks[0].ClientConfig.CABundle = other
		if err := api.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := w.SyncConfigurations(t.Context()); err != nil {
			t.Fatal(err)
		}
		get(t, api, ConfigurationName, v)
		for _, hook := range v.Webhooks {
			if string(hook.ClientConfig.CABundle) != string(other) {
				t.Errorf("%s has another CA", hook.Name)
			}
		}
	})
	t.Run("a namespace without budgets is taken out in time, one with a budget stays", func(t *testing.T) {
		create(t, api, &policyv1beta1.PodUnavailableBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "plain", Name: "web"},
			Spec:       policyv1beta1.PodUnavailableBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, MaxUnavailable: ptr.To(intstr.FromInt32(1))},
		})
		later := time.Now().Add(unseen + time.Second)
		w.Now = func() time.Time { return later }
		if err := w.SyncConfigurations(t.Context()); err != nil {
			t.Fatal(err)
		}
		m := &admissionv1.MutatingWebhookConfiguration{}
		if err := api.Get(t.Context(), client.ObjectKey{Name: ConfigurationName}, m); err != nil {
			t.Fatal(err)
		}
		if got := m.Webhooks[0].NamespaceSelector.MatchExpressions[2].Values; !slices.Equal(got, []string{"plain"}) {
			t.Errorf("namespaces are %v", got)
		}
	})
}
