// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preflight"
	"github.com/regatta-sh/regatta/test/install"
)

// answers is a server of webhooks that lets everything in, and counts.
type answers struct {
	*httptest.Server
	cert  []byte
	asked atomic.Int64
}

// newAnswers refuses what there is a reason for.
func newAnswers(t *testing.T, refusal string) *answers {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, []string{"kruise-webhook-service.kruise-system.svc"})
	if err != nil {
		t.Fatal(err)
	}
	a := &answers{cert: cert}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := admissionv1.AdmissionReview{}
		if json.NewDecoder(r.Body).Decode(&review) != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		a.asked.Add(1)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: refusal == "", Result: &metav1.Status{Message: refusal}}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	a.TLS = serveWith(t, cert, key)
	a.Config.ErrorLog = log.New(io.Discard, "", 0)
	a.StartTLS()
	t.Cleanup(a.Close)
	return a
}

// installed is a cluster with the chart, whose managers are what a test says.
func installed(t *testing.T) (*shop, *answers) {
	t.Helper()
	a := newAnswers(t, "")
	s := newShop(t)
	root, err := install.Root()
	if err != nil {
		t.Fatal(err)
	}
	url := "https://localhost:" + a.URL[strings.LastIndex(a.URL, ":")+1:]
	s.helm(t, "install", "kruise", filepath.Join(root, "charts", "kruise"), "--set", "webhookConfiguration.url="+url+",manager.decisions.apiService.enabled=false,featureGates=ResourceDistributionGate=true")
	return s, a
}

// patch changes an object, or its status.
func (s *shop) patch(t *testing.T, o client.Object, namespace, name, patch string, status bool) {
	t.Helper()
	o.SetNamespace(namespace)
	o.SetName(name)
	change := client.RawPatch(types.MergePatchType, []byte(patch))
	var err error
	if status {
		err = s.Status().Patch(context.Background(), o, change)
	} else {
		err = s.Patch(context.Background(), o, change)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// starts makes of the installation one whose managers and agents run.
func (s *shop) starts(t *testing.T, a *answers) {
	t.Helper()
	bundle := jsonOf(t, a.cert)
	for _, o := range []client.Object{&registrationv1.MutatingWebhookConfiguration{}, &registrationv1.ValidatingWebhookConfiguration{}} {
		name := "kruise-mutating-webhook-configuration"
		if _, ok := o.(*registrationv1.ValidatingWebhookConfiguration); ok {
			name = "kruise-validating-webhook-configuration"
		}
		u := &unstructured.Unstructured{}
		gvk, err := s.GroupVersionKindFor(o)
		if err != nil {
			t.Fatal(err)
		}
		u.SetGroupVersionKind(gvk)
		if err := s.Get(t.Context(), client.ObjectKey{Name: name}, u); err != nil {
			t.Fatal(err)
		}
		hooks, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
		for _, h := range hooks {
			config, _ := h.(map[string]any)["clientConfig"].(map[string]any)
			config["caBundle"] = strings.Trim(bundle, `"`)
		}
		if err := unstructured.SetNestedSlice(u.Object, hooks, "webhooks"); err != nil {
			t.Fatal(err)
		}
		if err := s.Update(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	s.patch(t, &corev1.Secret{}, "kruise-system", "kruise-webhook-certs", `{"data":{"tls.crt":`+bundle+`,"ca.crt":`+bundle+`}}`, false)
	s.patch(t, &appsv1.Deployment{}, "kruise-system", preflight.ManagerDeployment, `{"status":{"observedGeneration":1,"replicas":2,"readyReplicas":2,"availableReplicas":2,"updatedReplicas":2}}`, true)
	s.patch(t, &corev1.ResourceQuota{}, "kruise-system", "kruise-critical-pods", `{"status":{"hard":{"pods":"1000000"},"used":{"pods":"3"}}}`, true)
	now := metav1.NowMicro()
	for _, o := range []client.Object{
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-manager"}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("manager-1"), RenewTime: &now, LeaseDurationSeconds: ptr.To(int32(15)),
		}},
		newNode("n1", "amd64", "containerd://2.1.0", "v1.36.0"),
	} {
		if err := s.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	s.agentOn(t, "n1", true)
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// agentOn makes a pod of the node agent.
func (s *shop) agentOn(t *testing.T, node string, ready bool) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "agent-" + node, Labels: map[string]string{"control-plane": "daemon"}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "daemon", Image: "x"}}}}
	if err := s.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[ready]}}
	if !ready {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "daemon", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
	}
	if err := s.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// An installation from one that has just been made, without a manager, to one that works, and what breaks then.
func TestAfterAnInstallation(t *testing.T) {
	s, a := installed(t)
	t.Run("no manager has started", func(t *testing.T) {
		r, text, code := s.runs(t, "", "-o", "json")
		if code != exit.Refused || r.Phase != After || r.Manager == "" {
			t.Errorf("it ends with %d: %s", code, text)
		}
		wants(t, r, "Blocks | manager | Deployment kruise-system/kruise-controller-manager | status.availableReplicas | 0 of 2",
			"Blocks | manager | Lease kruise-system/kruise-manager | metadata.name | no manager has led yet",
			"Blocks | certificates | Secret kruise-system/kruise-webhook-certs | data[tls.crt] | there is no certificate yet",
			"Warns | certificates | MutatingWebhookConfiguration kruise-mutating-webhook-configuration | webhooks madvancedcronjob.kb.io clientConfig.caBundle | it is empty, so that the API server trusts the certificate of the URL only",
			"Blocks | webhooks | kind CloneSet | webhook mcloneset.kb.io | the API server gets no answer",
			"Warns | nodes | Nodes | items", "Fine | crds | CRDs | spec.versions | 20 of 20", "Fine | versions", "Fine | bundles")
	})
	s.starts(t, a)
	t.Run("all is well", func(t *testing.T) {
		before := a.asked.Load()
		r, text, code := s.runs(t, "", "-o", "json", "--strict")
		if code != exit.Fine {
			t.Errorf("it ends with %d: %s", code, text)
		}
		wants(t, r, "Fine | webhooks | dry run | create | 30 webhooks of 18 kinds answer", "Fine | agents | DaemonSet kruise-system/kruise-daemon | status.numberReady | 1 nodes have an agent")
		if asked := a.asked.Load() - before; asked != 30 {
			t.Errorf("%d webhooks were asked", asked)
		}
	})
	t.Run("certificates", func(t *testing.T) { testCertificates(t, s, a) })
	t.Run("managers", func(t *testing.T) { testManagers(t, s) })
	t.Run("agents", func(t *testing.T) { testAgents(t, s) })
	t.Run("bundles and gates", func(t *testing.T) { testBundles(t, s) })
	t.Run("CRDs", func(t *testing.T) { testCRDs(t, s) })
	t.Run("one who may read nothing", func(t *testing.T) {
		r, text, code := s.as(t, "bob").runs(t, "", "-o", "json", "--after")
		if code != exit.Fine || r.Result != Unknown {
			t.Errorf("it ends with %d: %s", code, text)
		}
	})
	t.Run("a webhook that hangs", func(t *testing.T) {
		a.Close()
		r, text, code := s.runs(t, "", "-o", "json")
		if code != exit.Refused {
			t.Errorf("it ends with %d: %s", code, text)
		}
		wants(t, r, "Blocks | webhooks | kind PodUnavailableBudget | webhook vpodunavailablebudget.kb.io | the API server gets no answer")
	})
}

func testCertificates(t *testing.T, s *shop, a *answers) {
	other, _, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	secret := func(cert []byte) {
		s.patch(t, &corev1.Secret{}, "kruise-system", "kruise-webhook-certs", `{"data":{"tls.crt":`+jsonOf(t, cert)+`,"ca.crt":`+jsonOf(t, cert)+`}}`, false)
	}
	secret(other)
	r, _, code := s.runs(t, "", "-o", "json")
	if code != exit.Refused {
		t.Errorf("with another certificate it ends with %d", code)
	}
	wants(t, r, "Blocks | certificates | ValidatingWebhookConfiguration kruise-validating-webhook-configuration | webhooks vadvancedcronjob.kb.io clientConfig.caBundle | it does not fit the certificate of Secret kruise-system/kruise-webhook-certs")
	secret(a.cert)
	// The CA of a conversion, which has no URL of its own here, is looked at as well.
	s.patch(t, &apiextensionsv1.CustomResourceDefinition{}, "", "clonesets.apps.kruise.io", `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":`+jsonOf(t, other)+`}}}}}`, false)
	r, _, _ = s.runs(t, "", "-o", "json")
	wants(t, r, "Blocks | certificates | CRD clonesets.apps.kruise.io | spec.conversion.webhook.clientConfig.caBundle | it does not fit the certificate")
	s.patch(t, &apiextensionsv1.CustomResourceDefinition{}, "", "clonesets.apps.kruise.io", `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":`+jsonOf(t, a.cert)+`}}}}}`, false)
	i, err := newInspector(s.env.Config, Options{Namespace: "kruise-system", Timeout: DefaultTimeout})
	if err != nil {
		t.Fatal(err)
	}
	for days, want := range map[int]string{
		340: "Warns | certificates | Secret kruise-system/kruise-webhook-certs | data[tls.crt] | it ends in ",
		400: "Blocks | certificates | Secret kruise-system/kruise-webhook-certs | data[tls.crt] | it ended at ",
		-40: "Blocks | certificates | Secret kruise-system/kruise-webhook-certs | data[tls.crt] | it is valid from ",
	} {
		i.report.Findings, i.now = nil, func() time.Time { return time.Now().AddDate(0, 0, days) }
		i.findServing(t.Context())
		wants(t, i.report, want)
	}
}

func testManagers(t *testing.T, s *shop) {
	i, err := newInspector(s.env.Config, Options{Namespace: "kruise-system", Timeout: DefaultTimeout})
	if err != nil {
		t.Fatal(err)
	}
	i.checkManager(t.Context())
	lease := func(spec string) {
		s.patch(t, &coordinationv1.Lease{}, "kruise-system", "kruise-manager", `{"spec":`+spec+`}`, false)
	}
	renew := func(at time.Time) {
		lease(`{"holderIdentity":"manager-1","renewTime":` + jsonOf(t, metav1.NewMicroTime(at)) + `}`)
	}
	old := func() { renew(time.Now().Add(-time.Hour)) }
	released := func() { lease(`{"holderIdentity":"","renewTime":` + jsonOf(t, metav1.NewMicroTime(time.Now())) + `}`) }
	takes := func() {
		lease(`{"holderIdentity":"manager-2","renewTime":` + jsonOf(t, metav1.NewMicroTime(time.Now())) + `}`)
	}
	for name, tc := range map[string]struct {
		before    func()
		meanwhile []func()
		want      string
	}{
		"no manager renews":                 {old, []func(){func() {}}, "Blocks | manager | Lease kruise-system/kruise-manager | spec.renewTime | no manager leads: manager-1 renewed it 1h0m"},
		"clocks differ":                     {old, []func(){func() { renew(time.Now().Add(-time.Hour + time.Second)) }}, "Warns | manager | Lease kruise-system/kruise-manager | spec.renewTime | manager-1 leads, but its clock"},
		"the next manager takes over":       {old, []func(){takes}, "Fine | manager | Lease kruise-system/kruise-manager | spec.renewTime | manager-2 leads"},
		"it is given back, and taken":       {released, []func(){func() {}, takes}, "Fine | manager | Lease kruise-system/kruise-manager | spec.renewTime | manager-2 leads"},
		"it is given back meanwhile":        {old, []func(){released, takes}, "Fine | manager | Lease kruise-system/kruise-manager | spec.renewTime | manager-2 leads"},
		"it is given back, and never taken": {released, []func(){func() {}, func() {}, func() {}}, "Blocks | manager | Lease kruise-system/kruise-manager | spec.holderIdentity | no manager leads"},
	} {
		tc.before()
		left := tc.meanwhile
		i.report.Findings, i.pause = nil, func(context.Context, time.Duration) {
			if len(left) == 0 {
				t.Errorf("%s: it looks more often", name)
				return
			}
			left[0]()
			left = left[1:]
		}
		i.checkLease(t.Context())
		if len(i.report.Findings) != 1 || len(left) > 0 {
			t.Errorf("%s: %v, and %d looks less", name, i.report.Findings, len(left))
		}
		wants(t, i.report, tc.want)
	}
	renew(time.Now())
	s.patch(t, &appsv1.Deployment{}, "kruise-system", preflight.ManagerDeployment, `{"status":{"availableReplicas":1,"readyReplicas":1,"conditions":[{"type":"ReplicaFailure","status":"True","reason":"FailedCreate","message":"insufficient quota to match these scopes"}]}}`, true)
	s.patch(t, &corev1.ResourceQuota{}, "kruise-system", "kruise-critical-pods", `{"status":{"used":{"pods":"1000000"}}}`, true)
	r, _, _ := s.runs(t, "", "-o", "json")
	wants(t, r, "Warns | manager | Deployment kruise-system/kruise-controller-manager | status.availableReplicas | 1 of 2",
		"Blocks | manager | Deployment kruise-system/kruise-controller-manager | status.conditions ReplicaFailure | FailedCreate: insufficient quota",
		"Warns | quotas | ResourceQuota kruise-system/kruise-critical-pods | status.used pods | 1M of 1M are used")
	s.patch(t, &appsv1.Deployment{}, "kruise-system", preflight.ManagerDeployment, `{"status":{"availableReplicas":2,"readyReplicas":2,"conditions":[]}}`, true)
	s.patch(t, &corev1.ResourceQuota{}, "kruise-system", "kruise-critical-pods", `{"status":{"used":{"pods":"3"}}}`, true)
	// Versions that differ.
	i.Program.Regatta, i.report.Findings = "v9.9.9", nil
	i.checkVersions(i.checkManager(t.Context()), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: agentName}})
	wants(t, i.report, "Warns | versions | Deployment kruise-system/kruise-controller-manager | metadata.labels app.kubernetes.io/version | the chart is of version ", "Warns | versions | DaemonSet kruise-system/kruise-daemon | spec.template.spec.containers image")
}

func testAgents(t *testing.T, s *shop) {
	virtual := newNode("n4", "amd64", "containerd://2.1.0", "v1.36.0")
	virtual.Labels["type"] = "virtual-kubelet"
	s.create(t, newNode("n2", "amd64", "containerd://2.1.0", "v1.36.0"), newNode("n3", "amd64", "containerd://2.1.0", "v1.36.0"), virtual,
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "e"}, Reason: "FailedCreate", Message: "violates PodSecurity", InvolvedObject: corev1.ObjectReference{Kind: "DaemonSet", Namespace: "kruise-system", Name: "kruise-daemon"}})
	s.agentOn(t, "n3", false)
	r, text, code := s.runs(t, "", "-o", "json")
	if code != exit.Fine {
		t.Errorf("it ends with %d: %s", code, text)
	}
	wants(t, r, "Warns | agents | DaemonSet kruise-system/kruise-daemon | nodes n2 | 1 nodes have no agent, so that nothing restarts in place or is pulled ahead there; violates PodSecurity",
		"Warns | agents | DaemonSet kruise-system/kruise-daemon | nodes n3 | the agents of 1 nodes are not ready", "Warns | agents | Pod kruise-system/agent-n3 | status.containerStatuses daemon | it waits: ImagePullBackOff no such image",
		"Fine | agents | DaemonSet kruise-system/kruise-daemon | status.numberReady | 1 nodes have an agent that is ready; 1 are not meant to")
}

func testBundles(t *testing.T, s *shop) {
	bundle := &policyv1alpha1.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: "freeze"}}
	bundle.Spec.Files = map[string]policyv1alpha1.FileText{"x.rego": "package x"}
	job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"image": "example.com/x:1", "completionPolicy": map[string]any{"type": "Always"}}}}
	job.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "ImagePullJob"})
	job.SetNamespace("default")
	job.SetName("pull")
	s.create(t, bundle, job)
	r, _, _ := s.runs(t, "", "-o", "json")
	wants(t, r, "Warns | bundles | ClusterPolicyBundle freeze | status.observedGeneration",
		`Warns | gates | ImagePullJob default/pull | feature gates | there are such objects, and no controller acts on objects of kind ImagePullJob, because the feature gate ImagePullJobGate is off | turn it on in the values of the chart`)
	ready := metav1.Condition{Type: policyv1alpha1.PolicyBundleReady, Status: metav1.ConditionFalse, Reason: "CompileFailed", Message: "x.rego:1:1 no", ObservedGeneration: bundle.Generation, LastTransitionTime: metav1.Now()}
	bundle.Status = policyv1alpha1.PolicyBundleStatus{ObservedGeneration: bundle.Generation, Conditions: []metav1.Condition{ready}, Replicas: []policyv1alpha1.PolicyReplica{
		{Name: "m-1", Strict: "NotLoaded", Problem: "no memory"}, {Name: "m-2", RolledBack: strings.Repeat("a", 64)}, {Name: "m-3", Problem: "late"}, {Name: "m-4"},
	}}
	if err := s.Status().Update(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	r, _, code := s.runs(t, "", "-o", "json")
	if code != exit.Refused {
		t.Errorf("with a strict fallback in force it ends with %d", code)
	}
	wants(t, r, "Warns | bundles | ClusterPolicyBundle freeze | status.conditions Ready | CompileFailed: x.rego:1:1 no",
		"Blocks | bundles | ClusterPolicyBundle freeze | status.replicas m-1 strict | it cannot run the active revision (NotLoaded), and holds and refuses where that takes part: no memory",
		"Warns | bundles | ClusterPolicyBundle freeze | status.replicas m-2 rolledBack", "Warns | bundles | ClusterPolicyBundle freeze | status.replicas m-3 problem | late")
}

func testCRDs(t *testing.T, s *shop) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: "nodeimages.apps.kruise.io"}, crd); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	spec := crd.Spec.Versions[at].Schema.OpenAPIV3Schema.Properties["spec"]
	delete(spec.Properties, "images")
	crd.Spec.Versions[at].Schema.OpenAPIV3Schema.Properties["spec"] = spec
	if err := s.Update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "ephemeraljobs.apps.kruise.io"}}); err != nil {
		t.Fatal(err)
	}
	r, text, code := s.runs(t, "", "-o", "json")
	if code != exit.Refused {
		t.Errorf("it ends with %d: %s", code, text)
	}
	wants(t, r, "Warns | crds | CRD nodeimages.apps.kruise.io | spec.versions.v1beta1.schema.openAPIV3Schema.properties.spec.properties | it is not as this program knows it",
		"Blocks | crds | CRD ephemeraljobs.apps.kruise.io | metadata.", "Fine | crds | CRDs | spec.versions | 18 of 20")
}

func serveWith(t *testing.T, cert, key []byte) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}
