// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// versioned is a kind whose versions have rules of their own.
func versioned() *Kind[*v1beta1.CloneSet] {
	k := sets()
	k.Version = "v1beta1"
	k.SameOlder = func(a, b Spoke) bool {
		return equality.Semantic.DeepEqual(a.(*v1alpha1.CloneSet).Spec, b.(*v1alpha1.CloneSet).Spec)
	}
	k.DefaultOlder = func(object Spoke, old *v1beta1.CloneSet) {
		if old == nil {
			object.(*v1alpha1.CloneSet).Spec.Replicas = ptr.To[int32](7)
		}
	}
	k.ValidateVersion = func(_ context.Context, o Object[*v1beta1.CloneSet], old *Object[*v1beta1.CloneSet], found *rules.Findings) {
		if set, ok := o.Older.(*v1alpha1.CloneSet); ok {
			found.AddErrors(field.Invalid(field.NewPath("spec", "updateStrategy", "type"), set.Spec.UpdateStrategy.Type, "only v1alpha1 has this rule"))
		}
		found.AddErrors(field.Forbidden(field.NewPath("spec", "updateStrategy", "rollingUpdate", "paused"), "both have this rule"))
		if old != nil {
			found.AddWarning(field.NewPath("spec", "updateStrategy", "rollingUpdate", "maxSurge"), "it was another")
		}
	}
	return k
}

func TestAVersionMayHaveRulesOfItsOwn(t *testing.T) {
	v := versioned().ValidatingHandler()
	for _, tc := range []struct {
		name, version string
		operation     admissionv1.Operation
		object, old   string
		want          []string
		warning       string
	}{
		{"the newer version", "v1beta1", admissionv1.Create, newer, "", []string{"spec.updateStrategy.rollingUpdate.paused"}, ""},
		{"the older version", "v1alpha1", admissionv1.Create, older, "", []string{"spec.updateStrategy.type", "spec.updateStrategy.paused"}, ""},
		{"an update of the newer version", "v1beta1", admissionv1.Update, newer, fine, []string{"spec.updateStrategy.rollingUpdate.paused"}, "spec.updateStrategy.rollingUpdate.maxSurge: it was another"},
		{"an update of the older version", "v1alpha1", admissionv1.Update, older, fine, []string{"spec.updateStrategy.type", "spec.updateStrategy.paused"}, "spec.updateStrategy.maxSurge: it was another"},
		{"an annotation that is a field of the hub", "v1alpha1", admissionv1.Update,
			`{"metadata":{"annotations":{"apps.kruise.io/image-predownload-parallelism":"2"}},` + older[1:], older, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := v.Handle(t.Context(), request(tc.version, tc.operation, tc.object, tc.old))
			if got.Allowed != (tc.want == nil) {
				t.Fatalf("got %t, %v", got.Allowed, got.Result)
			}
			var fields []string
			if !got.Allowed {
				for _, cause := range got.Result.Details.Causes {
					fields = append(fields, cause.Field)
				}
			}
			if strings.Join(fields, " ") != strings.Join(tc.want, " ") || strings.Join(got.Warnings, " ") != tc.warning {
				t.Errorf("got errors of %q and warnings %q", fields, got.Warnings)
			}
		})
	}
	for _, version := range []string{"v1", ""} {
		if got := v.Handle(t.Context(), request(version, admissionv1.Create, fine, "")); got.Allowed || !strings.Contains(got.Result.Message, `version "`+version+`": there are v1alpha1 and v1beta1`) {
			t.Errorf("version %q got %t, %v", version, got.Allowed, got.Result)
		}
	}
}

func TestAVersionMayHaveDefaultsOfItsOwn(t *testing.T) {
	k := versioned()
	for _, tc := range []struct {
		name, version string
		operation     admissionv1.Operation
		patches       string
	}{
		{"the newer version", "v1beta1", admissionv1.Create, `[{"op":"add","path":"/spec/replicas","value":1}]`},
		{"the older version", "v1alpha1", admissionv1.Create, `[{"op":"add","path":"/spec/replicas","value":7}]`},
		{"an update of the older version", "v1alpha1", admissionv1.Update, `[]`},
	} {
		got := k.MutatingHandler().Handle(t.Context(), request(tc.version, tc.operation, fine, fine))
		text := "["
		for _, p := range got.Patches {
			text += p.Json()
		}
		if text += "]"; !got.Allowed || text != tc.patches {
			t.Errorf("%s: %t, %s", tc.name, got.Allowed, text)
		}
	}
	k.Default, k.Fill = nil, nil
	if k.MutatingHandler() == nil {
		t.Error("a kind with defaults of one version has no webhook that fills them in")
	}
}
