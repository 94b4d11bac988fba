// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	reviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/certs"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision/protection"
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

func policies(t *testing.T, gates protection.Gates, answer string) *Rules {
	t.Helper()
	e, err := engine.New(fstest.MapFS{"protection/guards.rego": {Data: []byte("package protection\n\nguards := " + answer)}}, engine.WithPatience(20)) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return NewRules(e, gates)
}

const nothing = `{"kinds": [], "guards": []}`

// apiServer is for all tests of the package.
var apiServer apiserver.Shared

func TestMain(m *testing.M) { apiServer.RunTests(m) }

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
