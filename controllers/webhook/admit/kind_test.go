// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// sets is a kind with two versions that differ.
func sets() *Kind[*v1beta1.CloneSet] {
	return &Kind[*v1beta1.CloneSet]{
		New: func() *v1beta1.CloneSet { return &v1beta1.CloneSet{} }, Older: func() Spoke { return &v1alpha1.CloneSet{} }, OlderVersion: "v1alpha1",
		Renamed: map[string]string{"spec.updateStrategy.rollingUpdate": "spec.updateStrategy"},
		Loose:   []string{"spec.template"},
		Same:    func(a, b *v1beta1.CloneSet) bool { return equality.Semantic.DeepEqual(a.Spec, b.Spec) },
		Default: func(set, _ *v1beta1.CloneSet) {
			if set.Spec.Replicas == nil {
				set.Spec.Replicas = ptr.To[int32](1)
			}
		},
		Validate: func(_ context.Context, set, old *v1beta1.CloneSet, found *rules.Findings) {
			rolling := field.NewPath("spec", "updateStrategy", "rollingUpdate")
			if set.Spec.UpdateStrategy.RollingUpdate.Paused {
				found.AddErrors(field.Forbidden(rolling.Child("paused"), "no pauses"))
			}
			if old != nil {
				found.AddWarning(field.NewPath("spec"), "it was another")
			}
		},
	}
}

func request(version string, operation admissionv1.Operation, object, old string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Name: "web", Operation: operation, Kind: metav1.GroupVersionKind{Group: "apps.kruise.io", Version: version, Kind: "CloneSet"},
		Object: runtime.RawExtension{Raw: []byte(object)}, OldObject: runtime.RawExtension{Raw: []byte(old)},
	}}
}

const (
	older = `{"spec":{"replicas":2,"updateStrategy":{"type":"InPlaceOnly","paused":true}}}`
	newer = `{"spec":{"replicas":2,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"paused":true}}}}`
	fine  = `{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{}}}}`
)

func TestAMistakeIsNamedInTheVersionOfTheUser(t *testing.T) {
	v := sets().ValidatingHandler()
	for _, tc := range []struct {
		name, version string
		operation     admissionv1.Operation
		object, old   string
		want          string
		warnings      int
	}{
		{"the newer version", "v1beta1", admissionv1.Create, newer, "", "spec.updateStrategy.rollingUpdate.paused: Forbidden: no pauses", 0},
		{"the older version", "v1alpha1", admissionv1.Create, older, "", "spec.updateStrategy.paused: Forbidden: no pauses", 0},
		{"an update that breaks it", "v1beta1", admissionv1.Update, newer, fine, "no pauses", 1},
		{"an update that leaves it as it is", "v1beta1", admissionv1.Update, newer, newer, "", 0},
		{"an update that mends it", "v1beta1", admissionv1.Update, fine, newer, "", 1},
		{"a misspelt field of the template", "v1beta1", admissionv1.Create, `{"spec":{"updateStrategy":{"rollingUpdate":{}},"template":{"spec":{"containers":[{"imagee":"x"}]}},"templat":1}}`, "", "", 1},
		{"a misspelt field of the template in the older version", "v1alpha1", admissionv1.Create, `{"spec":{"updateStrategy":{"partition":1},"template":{"specc":{}}}}`, "", "", 1},
		{"a delete", "v1beta1", admissionv1.Delete, "", newer, "", 0},
		{"what cannot be read", "v1beta1", admissionv1.Create, "[]", "", "reading the object", 0},
		{"what cannot be read in the older version", "v1alpha1", admissionv1.Create, "[]", "", "reading the object", 0},
		{"an old object that cannot be read", "v1beta1", admissionv1.Update, fine, "[]", "reading the object", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := v.Handle(t.Context(), request(tc.version, tc.operation, tc.object, tc.old))
			if got.Allowed != (tc.want == "") || !got.Allowed && !strings.Contains(got.Result.Message, tc.want) || len(got.Warnings) != tc.warnings {
				t.Errorf("got %t, %v, %v; want %q", got.Allowed, got.Result, got.Warnings, tc.want)
			}
		})
	}
}

func TestDefaultsAreFilledInWhereTheUserTypes(t *testing.T) {
	d := sets().MutatingHandler()
	for _, tc := range []struct{ name, version, object, path string }{
		{"in the newer version", "v1beta1", fine, "/spec/replicas"},
		{"in the older version", "v1alpha1", `{"spec":{"updateStrategy":{"type":"InPlaceOnly"}}}`, "/spec/replicas"},
		{"nothing is left out", "v1beta1", newer, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := d.Handle(t.Context(), request(tc.version, admissionv1.Create, tc.object, ""))
			if !got.Allowed || len(got.Patches) > 1 || (tc.path != "") != (len(got.Patches) == 1) || len(got.Patches) == 1 && got.Patches[0].Path != tc.path {
				t.Errorf("got %t, %v", got.Allowed, got.Patches)
			}
		})
	}
	if got := d.Handle(t.Context(), request("v1beta1", admissionv1.Create, "[]", "")); !got.Allowed { // the validator refuses it
		t.Errorf("got %v", got.Result)
	}
	if got := d.Handle(t.Context(), request("v1beta1", admissionv1.Delete, "", "[]")); !got.Allowed {
		t.Errorf("got %v", got.Result)
	}
	k := sets()
	k.Default = nil
	if k.MutatingHandler() != nil {
		t.Error("a kind without defaults has a webhook that fills them in")
	}
}

func TestWhatIsLookedUpIsFilledInOnce(t *testing.T) {
	k := sets()
	k.Fill = func(_ context.Context, set *v1beta1.CloneSet) {
		set.Spec.MinReadySeconds = 10 * *set.Spec.Replicas // which the default has filled in
	}
	for _, tc := range []struct {
		name, version string
		operation     admissionv1.Operation
		patches       int
	}{
		{"of a new object", "v1beta1", admissionv1.Create, 2},
		{"of a new object of the older version", "v1alpha1", admissionv1.Create, 2},
		{"not of an old one", "v1beta1", admissionv1.Update, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := k.MutatingHandler().Handle(t.Context(), request(tc.version, tc.operation, fine, fine))
			if !got.Allowed || len(got.Patches) != tc.patches {
				t.Errorf("got %t, %v", got.Allowed, got.Patches)
			}
		})
	}
	k.Default, k.Fill = nil, func(_ context.Context, set *v1beta1.CloneSet) { set.Spec.MinReadySeconds = 1 }
	if got := k.MutatingHandler().Handle(t.Context(), request("v1beta1", admissionv1.Create, fine, "")); len(got.Patches) != 1 {
		t.Errorf("without defaults: %v", got.Patches)
	}
}

func TestPlaces(t *testing.T) {
	k := sets()
	k.Renamed = map[string]string{"spec.a[].b": "spec.a[].c", "spec.a[].b.d": "spec.e[]", "spec.x": "spec.y"}
	for path, want := range map[string]string{
		"spec.a[1].b": "spec.a[1].c", "spec.a[1].b[2].k": "spec.a[1].c[2].k", "spec.a[7].b.d": "spec.e[7]", "spec.a[1].bb": "spec.a[1].bb",
		"spec.x": "spec.y", "spec.xx": "spec.xx", "spec.z[app.kubernetes.io/name]": "spec.z[app.kubernetes.io/name]",
	} {
		if got := k.olderPath(path); got != want {
			t.Errorf("%s is at %s, want %s", path, got, want)
		}
	}
}
