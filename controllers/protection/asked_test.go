// SPDX-License-Identifier: Apache-2.0

package protection

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	points "github.com/regatta-sh/regatta/engine/decision/protection"
)

const storedPod = `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"shop","name":"web-0","uid":"u1","creationTimestamp":"2026-01-02T03:04:05Z",
 "labels":{"app":"web"},"annotations":{"a":"b","kubectl.kubernetes.io/last-applied-configuration":"{\"env\":\"secret\"}"},
 "ownerReferences":[{"apiVersion":"v1","kind":"Other","name":"x","uid":"1"},{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","name":"web","uid":"2","controller":true}]},
 "spec":{"containers":[{"name":"main","image":"x"}]}}`

func request(operation admissionv1.Operation, sub string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "r1", Operation: operation, SubResource: sub, Namespace: "shop", Name: "web-0",
		Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		UserInfo: authenticationv1.UserInfo{Username: "ann", Groups: []string{"ops"}},
	}}
}

func TestRead(t *testing.T) {
	user := points.User{Name: "ann", Groups: []string{"ops"}}
	whole := points.Object{
		Version: "v1", Resource: "pods", Kind: "Pod", Namespace: "shop", Name: "web-0", UID: "u1",
		Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano(),
		Labels:  map[string]string{"app": "web"}, Annotations: map[string]string{"a": "b"},
		Owner: &points.Owner{Group: "apps.kruise.io", Kind: "CloneSet", Name: "web"},
	}
	going := whole
	going.Terminating = true
	bare := points.Object{Version: "v1", Resource: "pods", Kind: "Pod", Namespace: "shop", Name: "web-0"}
	evict := func(body string) admission.Request {
		r := request(admissionv1.Create, "eviction")
		r.Kind = metav1.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}
		r.Object.Raw = []byte(body)
		return r
	}
	with := func(r admission.Request, old string, dry bool) admission.Request {
		r.OldObject.Raw, r.DryRun = []byte(old), ptr.To(dry)
		return r
	}
	collection := with(request(admissionv1.Delete, ""), storedPod, false)
	collection.Name = ""
	for _, tc := range []struct {
		name string
		in   admission.Request
		want Asked
		err  string
	}{
		{"a delete is of the stored object, and without what was applied", with(request(admissionv1.Delete, ""), storedPod, false),
			Asked{points.Request{UID: "r1", Operation: "DELETE", User: user}, whole}, ""},
		{"a delete of a collection names no object, so the stored object names it", collection,
			Asked{points.Request{UID: "r1", Operation: "DELETE", User: user}, whole}, ""},
		{"one that is going is known as such", with(request(admissionv1.Delete, ""), strings.Replace(storedPod, `"uid":"u1"`, `"uid":"u1","deletionTimestamp":"2026-01-02T03:04:06Z"`, 1), false),
			Asked{points.Request{UID: "r1", Operation: "DELETE", User: user}, going}, ""},
		{"a dry run is one", with(request(admissionv1.Update, ""), storedPod, true),
			Asked{points.Request{UID: "r1", Operation: "UPDATE", DryRun: true, User: user}, whole}, ""},
		{"a resize is an operation of its own", with(request(admissionv1.Update, "resize"), storedPod, false),
			Asked{points.Request{UID: "r1", Operation: "RESIZE", User: user}, whole}, ""},
		{"a delete may come without what is stored", request(admissionv1.Delete, ""),
			Asked{points.Request{UID: "r1", Operation: "DELETE", User: user}, bare}, ""},
		{"an eviction knows the pod by name", evict(`{"metadata":{"name":"web-0"}}`),
			Asked{points.Request{UID: "r1", Operation: "EVICT", User: user}, bare}, ""},
		{"an eviction may be a dry run by its body alone", evict(`{"metadata":{"name":"web-0"},"deleteOptions":{"dryRun":["All"]}}`),
			Asked{points.Request{UID: "r1", Operation: "EVICT", DryRun: true, User: user}, bare}, ""},
		{"a create is nothing that protection is about", request(admissionv1.Create, ""), Asked{}, "CREATE of pods is nothing that protection is asked about"},
		{"nor is a connect", request(admissionv1.Connect, "exec"), Asked{}, "CONNECT of pods/exec is nothing"},
		{"an object that cannot be read", with(request(admissionv1.Delete, ""), `[]`, false), Asked{}, "reading the stored object of the request"},
		{"an eviction that cannot be read", evict(`[]`), Asked{}, "reading the eviction of the request"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Read(&tc.in)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Error(diff)
			}
			if got.HasStoredObject() != (tc.want.Object.UID != "") {
				t.Errorf("stored: %t", got.HasStoredObject())
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add("DELETE", "", []byte(storedPod), []byte{})
	f.Add("CREATE", "eviction", []byte{}, []byte(`{"deleteOptions":{"dryRun":null}}`))
	f.Add("UPDATE", "resize", []byte(`{"metadata":{"ownerReferences":[{"controller":true}]}}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, operation, sub string, old, object []byte) {
		r := request(admissionv1.Operation(operation), sub)
		r.OldObject, r.Object = runtime.RawExtension{Raw: old}, runtime.RawExtension{Raw: object}
		a, err := Read(&r)
		if err != nil {
			return
		}
		if a.Request.Operation == "" {
			t.Errorf("%s %s is read as no operation", operation, sub)
		}
		if _, err := json.Marshal(a); err != nil {
			t.Error(err)
		}
	})
}
