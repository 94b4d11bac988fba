package guards

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	reviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	kruise "github.com/regatta-sh/regatta/controllers/api"
	policyv1beta1 "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/certs"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// sent are the requests that left the API server.
type sent struct {
	*httptest.Server
	mu    sync.Mutex
	calls []string
}

func listen(t *testing.T) *sent {
	t.Helper()
	s := &sent{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &reviewv1.AdmissionReview{}
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, review) != nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		q := review.Request
		call := fmt.Sprintf("%s %s %s", r.URL.Path, q.Operation, q.Resource.Resource)
		if q.SubResource != "" {
			call += "/" + q.SubResource
		}
		s.mu.Lock()
		s.calls = append(s.calls, call+" "+q.Namespace+" "+q.Name)
		s.mu.Unlock()
		review.Response = &reviewv1.AdmissionResponse{UID: q.UID, Allowed: true}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review) // the API server has hung up
	}))
	t.Cleanup(s.Close)
	return s
}

// since are the calls since it was asked last.
func (s *sent) since() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

func (s *sent) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func policies(t *testing.T, gates decision.ProtectionGates, answer string) *Rules {
	t.Helper()
	e, err := engine.New(fstest.MapFS{"protection/guards.rego": {Data: []byte("package protection\n\nguards := " + answer)}}, engine.WithPatience(20)) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return NewRules(e, gates)
}

const nothing = `{"kinds": [], "guards": []}`

func connect(t *testing.T) (*envtest.Environment, client.Client) {
	t.Helper()
	env := apiserver.Start(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kruise.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	env.Config.QPS, env.Config.Burst = 1000, 1000
	api, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	apiserver.Install(t, env, apiserver.CRDs(t, ""))
	return env, api
}

// chart makes what the chart makes.
func chart(t *testing.T, api client.Client, call admissionv1.WebhookClientConfig) {
	t.Helper()
	ignore, none := admissionv1.Ignore, admissionv1.SideEffectClassNone
	create(t, api,
		&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: certs.ValidatingConfiguration},
			Webhooks:   []admissionv1.ValidatingWebhook{{Name: "vcloneset.kb.io", ClientConfig: call, FailurePolicy: &ignore, SideEffects: &none, AdmissionReviewVersions: []string{"v1"}}},
		},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName, Labels: map[string]string{"a": "b"}}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName}},
	)
}

func create(t *testing.T, api client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

func newWriter(api client.Client, rules *Rules) (*Writer, *record.FakeRecorder) {
	events := record.NewFakeRecorder(10)
	return &Writer{
		Client: api, Live: api, Rules: rules, Config: installation(), Events: events, Now: time.Now,
		Undecided: prometheus.NewGauge(prometheus.GaugeOpts{Name: "undecided"}),
	}, events
}

func pod(namespace, name string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "nginx:1",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
		}}},
	}
}

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute for this: %s", what)
		}
	}
}

// What the API server sends: only what a budget or a rule can be about.
func TestWhatIsSent(t *testing.T) {
	_, api := connect(t)
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
		if err := w.Cover(t.Context(), ns); err != nil {
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
		if err := w.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if is := versions(t, api); is != was {
			t.Errorf("versions were %s and are %s", was, is)
		}
	})
	t.Run("what somebody changed is set right, and what is his is left", func(t *testing.T) {
		v := &admissionv1.ValidatingWebhookConfiguration{}
		get(t, api, ConfigurationName, v)
		v.Webhooks[0].FailurePolicy = ptr.To(admissionv1.Fail)
		v.Annotations = map[string]string{"somebody": "else"}
		if err := api.Update(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		if err := w.Sync(t.Context()); err != nil {
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
		if err := w.Sync(t.Context()); err != nil {
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
		if err := w.Sync(t.Context()); err != nil {
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

func owned(p *corev1.Pod, apiVersion string) *corev1.Pod {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: "X", Name: "x", UID: "1"}}
	return p
}

func deployment(ns, name string) *appsv1.Deployment {
	labels := map[string]string{"app": "x"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "x"}}}},
		},
	}
}

func get(t *testing.T, api client.Client, name string, into client.Object) {
	t.Helper()
	if err := api.Get(t.Context(), client.ObjectKey{Name: name}, into); err != nil {
		t.Fatal(err)
	}
}

func versions(t *testing.T, api client.Client) string {
	t.Helper()
	m, v := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	get(t, api, ConfigurationName, m)
	get(t, api, ConfigurationName, v)
	return m.ResourceVersion + " " + v.ResourceVersion
}

// While the policies do not say what is protected, everything stays as it is, and
// that is told once.
func TestUndecided(t *testing.T) {
	_, api := connect(t)
	t.Run("without the chart's objects nothing is written", func(t *testing.T) {
		w, _ := newWriter(api, policies(t, allGates(), nothing))
		if err := w.Cover(t.Context(), "shop"); err == nil || !strings.Contains(err.Error(), "MutatingWebhookConfiguration kruise-protection-webhook-configuration does not exist") {
			t.Errorf("got %v", err)
		}
	})
	chart(t, api, admissionv1.WebhookClientConfig{URL: ptr.To("https://localhost:1/x"), CABundle: listen(t).ca()})
	const undecided = `{"kinds": [], "guards": []} if input.gates.deletion == "no"`
	w, events := newWriter(api, policies(t, allGates(), undecided))
	for range 3 {
		if err := w.Cover(t.Context(), "shop"); err == nil || !strings.Contains(err.Error(), "no policy has said yet what is protected: Undefined") {
			t.Fatalf("got %v", err)
		}
	}
	if len(events.Events) != 1 {
		t.Errorf("%d events", len(events.Events))
	}
	w.Rules = policies(t, allGates(), `{"kinds": [{"group": "", "resource": "services"}], "guards": [{"rule": "r", "group": "", "resource": "nodes", "operations": ["DELETE"]}]}`)
	if err := w.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(events.Events); n != 2 {
		t.Errorf("%d events", n)
	}
	was := versions(t, api)
	known := w.Rules
	w.Rules = policies(t, allGates(), undecided)
	w.Rules.last, w.Rules.answered = known.last, true
	if err := w.Sync(t.Context()); err != nil || versions(t, api) != was {
		t.Errorf("versions were %s and are %s: %v", was, versions(t, api), err)
	}
	if k, err := w.Rules.Kind(t.Context(), "", "services"); k == nil || err != nil {
		t.Errorf("what was known of kinds is forgotten: %v", err)
	}
	if _, err := policies(t, allGates(), undecided).Kind(t.Context(), "", "services"); err == nil || !strings.Contains(err.Error(), "asking which kinds are protected: Undefined") {
		t.Errorf("got %v", err)
	}
}

// The twin lets go while a replica of the manager is ready, and no longer.
func TestTwin(t *testing.T) {
	_, api := connect(t)
	for name, labels := range map[string]map[string]string{"kruise-system": nil, "switched": {SwitchKey: SwitchOff}} {
		create(t, api, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	// The webhook itself cannot be called here, so it is not to stand in the way.
	ca := listen(t).ca()
	chart(t, api, admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "kruise-system", Name: "kruise-webhook-service", Path: ptr.To("/x")}, CABundle: ca})
	w, _ := newWriter(api, policies(t, allGates(), `{"kinds": [{"group": "", "resource": "services"}, {"group": "apps", "resource": "deployments"}], "guards": []}`))
	sync := func() {
		t.Helper()
		if err := w.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		v := &admissionv1.ValidatingWebhookConfiguration{}
		get(t, api, ConfigurationName, v)
		v.Webhooks = nil
		if err := api.Update(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	sync()
	n := 0
	try := func(o client.Object, value string) error {
		t.Helper()
		n++
		o.SetName(fmt.Sprintf("x-%d", n))
		if value != "" {
			o.SetLabels(map[string]string{"policy.kruise.io/delete-protection": value})
		}
		create(t, api, o)
		return api.Delete(t.Context(), o)
	}
	serviceIn := func(ns string) client.Object {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "x.example"}}
	}
	denied := func(err error, text string) bool {
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), text)
	}
	const notFound = "ValidatingAdmissionPolicy 'kruise-deletion-protection'"
	eventually(t, "it refuses without a Deployment", func() bool {
		err := try(serviceIn("default"), "Always") // the API server's own text, and its own code
		return err != nil && strings.Contains(err.Error(), notFound)
	})

	manager := deployment("kruise-system", DeploymentName)
	create(t, api, manager)
	eventually(t, "it refuses without a ready replica, and says so", func() bool { return denied(try(serviceIn("default"), "Always"), absent) })
	for name, tc := range map[string]struct {
		of    client.Object
		value string
		want  bool
	}{
		"another kind that is protected":  {deployment("default", ""), "Always", true},
		"one without the label":           {serviceIn("default"), "", false},
		"one whose label says Cascading":  {serviceIn("default"), "Cascading", false},
		"a kind that is not protected":    {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}, "Always", false},
		"one of kube-system":              {serviceIn("kube-system"), "Always", false},
		"one of a namespace switched off": {serviceIn("switched"), "Always", false},
		"one of the manager's own":        {serviceIn("kruise-system"), "Always", false},
	} {
		if err := try(tc.of, tc.value); denied(err, absent) != tc.want || !tc.want && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	manager.Status.Replicas, manager.Status.ReadyReplicas = 1, 1
	if err := api.Status().Update(t.Context(), manager); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it lets go with a ready replica", func() bool { return try(serviceIn("default"), "Always") == nil })
	manager.Status.ReadyReplicas = 0
	if err := api.Status().Update(t.Context(), manager); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it refuses again without one", func() bool { return denied(try(serviceIn("default"), "Always"), absent) })

	policy := &admissionv1.ValidatingAdmissionPolicy{}
	get(t, api, PolicyName, policy)
	if refs := policy.OwnerReferences; len(refs) != 1 || refs[0].Name != ConfigurationName || refs[0].Kind != "ValidatingWebhookConfiguration" {
		t.Errorf("it belongs to %v", refs)
	}
	if warnings := policy.Status.TypeChecking; warnings != nil && len(warnings.ExpressionWarnings) > 0 {
		t.Errorf("the API server warns: %v", warnings.ExpressionWarnings)
	}
	w.Rules = policies(t, allGates(), `{"kinds": [{"group": "", "resource": "configmaps"}], "guards": []}`)
	sync()
	eventually(t, "the kinds are others", func() bool {
		return denied(try(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}, "Always"), absent) && try(serviceIn("default"), "Always") == nil
	})
	w.Rules = policies(t, decision.ProtectionGates{}, `{"kinds": [{"group": "", "resource": "configmaps"}], "guards": []}`)
	sync()
	if err := api.Get(t.Context(), client.ObjectKey{Name: PolicyName}, policy); !apierrors.IsNotFound(err) {
		t.Errorf("the policy outlives its gate: %v", err)
	}
	if err := api.Get(t.Context(), client.ObjectKey{Name: PolicyName}, &admissionv1.ValidatingAdmissionPolicyBinding{}); !apierrors.IsNotFound(err) {
		t.Errorf("the binding outlives its gate: %v", err)
	}
}
