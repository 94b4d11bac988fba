// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

type manager struct {
	webhook.Server
	scheme *runtime.Scheme
	mux    *http.ServeMux
}

func (m *manager) GetWebhookServer() webhook.Server        { return m }
func (m *manager) GetScheme() *runtime.Scheme              { return m.scheme }
func (m *manager) GetClient() client.Client                { return nil }
func (m *manager) Register(path string, hook http.Handler) { m.mux.Handle(path, hook) }

func newManager(t *testing.T) *manager {
	t.Helper()
	m := &manager{scheme: runtime.NewScheme(), mux: http.NewServeMux()}
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(m.scheme); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func post(t *testing.T, m *manager, path, body string) string {
	t.Helper()
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	m.mux.ServeHTTP(recorder, request)
	if recorder.Code != http.StatusOK {
		t.Fatalf("%s answered %d: %s", path, recorder.Code, recorder.Body)
	}
	return recorder.Body.String()
}

func TestRegister(t *testing.T) {
	m := newManager(t)
	if err := RegisterWebhooks(m, Options{}); err != nil {
		t.Fatal(err)
	}
	const object = `{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","metadata":{"name":"web","labels":{"policy.kruise.io/delete-protection":"Always"}},"spec":{"selector":{}}}`
	admit := func(path, operation, fields string) *admissionv1.AdmissionResponse {
		review := &admissionv1.AdmissionReview{}
		answer := post(t, m, path, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"r","operation":"`+operation+
			`","kind":{"group":"apps.kruise.io","version":"v1beta1","kind":"CloneSet"},`+fields+`}}`)
		if err := json.Unmarshal([]byte(answer), review); err != nil || review.Response == nil || review.Response.UID != "r" {
			t.Fatalf("reading %s: %v", answer, err)
		}
		return review.Response
	}
	if got := admit("/mutate-apps-kruise-io-cloneset", "CREATE", `"object":`+object); !got.Allowed || !strings.Contains(string(got.Patch), `"/spec/replicas"`) {
		t.Errorf("got %t, %s", got.Allowed, got.Patch)
	}
	if got := admit("/validate-apps-kruise-io-cloneset", "CREATE", `"object":`+object); got.Allowed || !strings.Contains(got.Result.Message, "empty selector is invalid for cloneset") {
		t.Errorf("got %t, %v", got.Allowed, got.Result)
	}
	if got := admit("/validate-apps-kruise-io-cloneset", "DELETE", `"oldObject":`+object); !got.Allowed {
		t.Errorf("deletion is guarded elsewhere; got %v", got.Result)
	}
	if got := post(t, m, ConvertPath, `{"request":{"uid":"r","desiredAPIVersion":"apps.kruise.io/v1alpha1","objects":[`+object+`]}}`); !strings.Contains(got, `"disablePVCReuse":true`) {
		t.Errorf("got %s", got)
	}
	post(t, m, HealthPath, "")
}

func TestRegisterTellsWhatIsMissing(t *testing.T) {
	m := newManager(t)
	m.scheme = runtime.NewScheme()
	if err := RegisterWebhooks(m, Options{}); err == nil || !strings.Contains(err.Error(), "the scheme does not know apps.kruise.io/v1alpha1, Kind=CloneSet") {
		t.Errorf("got %v", err)
	}
}
