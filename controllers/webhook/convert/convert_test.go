// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func handler(t testing.TB) *Handler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1beta1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return &Handler{Scheme: scheme, Opaque: map[schema.GroupKind][]string{v1beta1.Kind("CloneSet"): {"template", "volumeClaimTemplates"}}}
}

func value(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("reading %s: %v", text, err)
	}
	return v
}

const (
	templates = `template: {spec: {newer: {a: 1}, containers: [{name: a, resources: {limits: {cpu: 1000m}}}]}}, volumeClaimTemplates: [{newer: 1}]`
	status    = `status: {replicas: 0, readyReplicas: 0, availableReplicas: 0, updatedReplicas: 0, updatedReadyReplicas: 0}`
	old       = `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: web, namespace: ns, uid: u}, ` + status + `, spec: {selector: {matchLabels: {a: b}}, ` + templates +
		`, scaleStrategy: {}, updateStrategy: {type: InPlaceOnly, partition: 3}}}`
	stored = `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web, namespace: ns, uid: u}, ` + status + `, spec: {selector: {matchLabels: {a: b}}, ` + templates +
		`, scaleStrategy: {enablePVCReuse: true}, updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceOnly, partition: 3}}}}`
)

func TestConvert(t *testing.T) {
	for _, tc := range []struct {
		name, in, to, want, fails string
	}{
		{name: "the hub keeps what it does not know of templates", in: old, to: "apps.kruise.io/v1beta1", want: stored},
		{name: "so does the old version", in: stored, to: "apps.kruise.io/v1alpha1", want: old},
		{name: "an object of the right version stays as it is", in: `{apiVersion: x/v1, anything: 1}`, to: "x/v1", want: `{apiVersion: x/v1, anything: 1}`},
		{name: "an object without a template gets none", in: `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {}}`, to: "apps.kruise.io/v1alpha1",
			want: `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {annotations: {conversion.regatta.sh/v1beta1: '{"updateStrategy":{}}'}}, ` + status + `, spec: {selector: null, scaleStrategy: {disablePVCReuse: true}, updateStrategy: {type: ReCreate}}}`},
		{name: "another kind is not made", in: stored, to: "apps/v1", fails: "converting CloneSet ns/web from apps.kruise.io/v1beta1 to apps/v1: CloneSet.apps is another kind"},
		{name: "an unknown version is not made", in: stored, to: "apps.kruise.io/v2", fails: `no kind "CloneSet" is registered for version "apps.kruise.io/v2"`},
		{name: "a kind without a hub is not made", in: `{apiVersion: v1, kind: Pod}`, to: "v2", fails: `no kind "Pod" is registered for version "v2"`},
		{name: "a spec of another form is an error", in: `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: []}`, to: "apps.kruise.io/v1alpha1", fails: "reading the spec: "},
		{name: "a field of another form is an error", in: `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {replicas: x}}`, to: "apps.kruise.io/v1alpha1", fails: "reading the object: "},
		{name: "a value that is no object is an error", in: `[]`, to: "apps.kruise.io/v1alpha1", fails: "reading the object to convert: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			raw, err := yaml.YAMLToJSON([]byte(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			got, err := handler(t).ConvertObject(raw, tc.to)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("got %s, %v; want an error with %q", got, err, tc.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(value(t, tc.want), value(t, string(got))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAReviewIsAnsweredInFull(t *testing.T) {
	one, _ := yaml.YAMLToJSON([]byte(old))
	ask := func(objects ...string) *apiextensionsv1.ConversionReview {
		review := &apiextensionsv1.ConversionReview{Request: &apiextensionsv1.ConversionRequest{UID: "r", DesiredAPIVersion: "apps.kruise.io/v1beta1"}}
		review.APIVersion, review.Kind = "apiextensions.k8s.io/v1", "ConversionReview"
		for _, object := range objects {
			review.Request.Objects = append(review.Request.Objects, runtime.RawExtension{Raw: []byte(object)})
		}
		body, err := json.Marshal(review)
		if err != nil {
			t.Fatal(err)
		}
		recorder := httptest.NewRecorder()
		handler(t).ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/convert", bytes.NewReader(body)))
		answer := &apiextensionsv1.ConversionReview{}
		if err := json.Unmarshal(recorder.Body.Bytes(), answer); err != nil {
			t.Fatalf("reading %s: %v", recorder.Body, err)
		}
		if answer.Request != nil || answer.Response == nil || answer.Response.UID != "r" || answer.APIVersion != review.APIVersion || answer.Kind != review.Kind {
			t.Fatalf("got %s", recorder.Body)
		}
		return answer
	}
	if got := ask(string(one), string(one)).Response; got.Result.Status != "Success" || len(got.ConvertedObjects) != 2 {
		t.Errorf("got %+v", got)
	}
	if got := ask(string(one), `{"kind":"CloneSet"}`).Response; got.Result.Status != "Failure" || len(got.ConvertedObjects) != 0 {
		t.Errorf("got %+v", got)
	}
	for _, body := range []string{"", "{}", "x"} {
		recorder := httptest.NewRecorder()
		handler(t).ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/convert", strings.NewReader(body)))
		if recorder.Code != 400 {
			t.Errorf("%q was answered with %d", body, recorder.Code)
		}
	}
}

func FuzzConvert(f *testing.F) {
	for _, text := range []string{old, stored, `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: null}`} {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	h := handler(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, version := range []string{"apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"} {
			if converted, err := h.ConvertObject(raw, version); err == nil && !json.Valid(converted) {
				t.Errorf("%s became %s", raw, converted)
			}
		}
	})
}
