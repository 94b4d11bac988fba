// SPDX-License-Identifier: Apache-2.0

package review

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func TestPatchedChangesOnlyWhatChanged(t *testing.T) {
	for _, tc := range []struct {
		name   string
		raw    string
		change func(*corev1.Pod)
		want   string
	}{
		{
			name:   "what is unknown, unusual or left out stays so",
			raw:    `{"metadata":{"name":"a"},"spec":{"newer":1,"containers":[{"name":"a","newer":{"x":[]},"resources":{"limits":{"cpu":"1000m"}}}]}}`,
			change: func(pod *corev1.Pod) { pod.Spec.DNSPolicy = "Default" },
			want:   `{"metadata":{"name":"a"},"spec":{"newer":1,"dnsPolicy":"Default","containers":[{"name":"a","newer":{"x":[]},"resources":{"limits":{"cpu":"1000m"}}}]}}`,
		},
		{
			name:   "a change inside an object that is not there adds the object",
			raw:    `{"spec":{"containers":[{"name":"a"}]}}`,
			change: func(pod *corev1.Pod) { pod.Labels = map[string]string{"x": "z"} },
			want:   `{"metadata":{"labels":{"x":"z"}},"spec":{"containers":[{"name":"a"}]}}`,
		},
		{
			name:   "a change in a list is in its place",
			raw:    `{"spec":{"containers":[{"name":"a","newer":1},{"name":"b"}]}}`,
			change: func(pod *corev1.Pod) { pod.Spec.Containers[1].Image = "x" },
			want:   `{"spec":{"containers":[{"name":"a","newer":1},{"name":"b","image":"x"}]}}`,
		},
		{
			name:   "null is replaced",
			raw:    `{"spec":{"dnsPolicy":null,"containers":null}}`,
			change: func(pod *corev1.Pod) { pod.Spec.DNSPolicy = "Default" },
			want:   `{"spec":{"dnsPolicy":"Default","containers":null}}`,
		},
		{
			name:   "no change is no patch",
			raw:    `{"newer":1}`,
			change: func(*corev1.Pod) {},
			want:   `{"newer":1}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := &corev1.Pod{}
			if err := json.Unmarshal([]byte(tc.raw), before); err != nil {
				t.Fatal(err)
			}
			after := before.DeepCopy()
			tc.change(after)
			response := PatchResponse([]byte(tc.raw), before, after)
			if err := response.Complete(admission.Request{}); err != nil || !response.Allowed {
				t.Fatalf("completing the response: %v, %v", err, response.Result)
			}
			got := []byte(tc.raw)
			if response.Patch != nil {
				patch, err := jsonpatch.DecodePatch(response.Patch)
				if err != nil {
					t.Fatal(err)
				}
				if got, err = patch.Apply(got); err != nil {
					t.Fatalf("applying %s: %v", response.Patch, err)
				}
			}
			var gotValue, wantValue any
			if json.Unmarshal(got, &gotValue) != nil || json.Unmarshal([]byte(tc.want), &wantValue) != nil {
				t.Fatalf("reading %s and %s", got, tc.want)
			}
			if diff := cmp.Diff(wantValue, gotValue); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPatchedTellsWhatItCannotRead(t *testing.T) {
	if got := PatchResponse([]byte(`[`), 1, 2); got.Allowed || got.Result.Code != 500 {
		t.Errorf("got %v, want an error", got)
	}
	if got := PatchResponse([]byte(`{}`), func() {}, 2); got.Allowed || got.Result.Code != 500 {
		t.Errorf("got %v, want an error", got)
	}
}

func TestInvalid(t *testing.T) {
	request := &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Name: "x", Kind: metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "CloneSet"},
	}}
	got := RefuseInvalid(request, field.ErrorList{field.Required(field.NewPath("spec", "selector"), "")})
	if got.Allowed || got.Result.Code != 422 || got.Result.Message != `CloneSet.apps.kruise.io "x" is invalid: spec.selector: Required value` {
		t.Errorf("got %v", got.Result)
	}
	want := []metav1.StatusCause{{Type: "FieldValueRequired", Message: "Required value", Field: "spec.selector"}}
	if diff := cmp.Diff(want, got.Result.Details.Causes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
