// SPDX-License-Identifier: Apache-2.0

package gatedkinds

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/api"
	"github.com/regatta-sh/regatta/controllers/features"
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := api.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheStatusHasWhatItsSchemaWants(t *testing.T) {
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	told := func(kind string, fields ...any) map[string]any {
		c := map[string]any{
			"type": "Stalled", "status": "True", "reason": "FeatureGateOff", "lastTransitionTime": "2026-11-21T08:00:00Z",
			"message": "a gate of " + kind + " is off",
		}
		for i := 0; i < len(fields); i += 2 {
			c[fields[i].(string)] = fields[i+1]
		}
		return c
	}
	for _, tc := range []struct {
		name, kind string
		status     map[string]any
		want       map[string]any
	}{
		{
			name: "an empty status gets its required numbers", kind: "SidecarSet",
			want: map[string]any{"matchedPods": int64(0), "updatedPods": int64(0), "readyPods": int64(0), "conditions": []any{told("SidecarSet", "observedGeneration", int64(3))}},
		},
		{
			name: "what is there stays, and conditions have the fields of their kind", kind: "BroadcastJob",
			status: map[string]any{"active": int64(2), "conditions": []any{map[string]any{"type": "Failed", "status": "False"}}},
			want: map[string]any{"active": int64(2), "succeeded": int64(0), "failed": int64(0), "desired": int64(0), "conditions": []any{
				map[string]any{"type": "Failed", "status": "False"}, told("BroadcastJob"),
			}},
		},
		{
			name: "what an earlier version wrote is replaced, and what the controller wrote while the gate was on", kind: "ImagePullJob",
			status: map[string]any{"conditions": []any{
				map[string]any{"type": "Stalled", "status": "True", "reason": "NotImplemented"},
				map[string]any{"type": "Reconciling", "status": "True", "reason": "Progressing"}, map[string]any{"type": "Ready", "status": "False", "reason": "Progressing"},
			}},
			want: map[string]any{"desired": int64(0), "conditions": []any{told("ImagePullJob", "observedGeneration", int64(3))}},
		},
		{
			name: "a request has a phase", kind: "ContainerRecreateRequest",
			want: map[string]any{"phase": "Pending", "conditions": []any{told("ContainerRecreateRequest", "observedGeneration", int64(3))}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps.kruise.io/v1beta1", "kind": tc.kind}}
			object.SetGeneration(3)
			if tc.status != nil {
				object.Object["status"] = tc.status
			}
			got, err := statusOf(scheme(t), object, "a gate of "+tc.kind+" is off", now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			object.Object["status"] = got
			if !isStalled(object, "a gate of "+tc.kind+" is off") {
				t.Error("it does not see its own condition")
			}
		})
	}
}

func TestKindsWhoseGatesAreOff(t *testing.T) {
	all := func(featuregate.Feature) bool { return true }
	none := func(featuregate.Feature) bool { return false }
	but := func(off ...featuregate.Feature) func(featuregate.Feature) bool {
		return func(f featuregate.Feature) bool { return !slices.Contains(off, f) }
	}
	for name, tc := range map[string]struct {
		on   func(featuregate.Feature) bool
		want []string
	}{
		"all are on": {on: all},
		"all are off": {on: none, want: []string{
			"ContainerRecreateRequest", "ImageListPullJob", "ImagePullJob", "NodeImage", "NodePodProbe", "PodProbeMarker", "PodUnavailableBudget", "ResourceDistribution", "WorkloadSpread",
		}},
		"no pull jobs":                     {on: but(features.ImagePullJobGate), want: []string{"ImageListPullJob", "ImagePullJob"}},
		"one of the gates of budgets":      {on: but(features.PodUnavailableBudgetDeleteGate)},
		"both gates of budgets":            {on: but(features.PodUnavailableBudgetDeleteGate, features.PodUnavailableBudgetUpdateGate), want: []string{"PodUnavailableBudget"}},
		"probes for liveness only":         {on: but(features.PodProbeMarkerGate), want: []string{"PodProbeMarker"}},
		"pods do not go through a webhook": {on: but(features.PodWebhook), want: []string{"PodUnavailableBudget", "WorkloadSpread"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, kind := range ListUnserved(scheme(t), tc.on) {
				got = append(got, kind.Kind)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestObjectsOfKindsWhoseGatesAreOffAreRefused creates and changes an object of each kind with
// gates, with all gates off and on.
func TestObjectsOfKindsWhoseGatesAreOffAreRefused(t *testing.T) {
	next := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("next") })
	for kind := range requiredGates() {
		for _, on := range []bool{true, false} {
			for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
				request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Name: "a", Operation: operation, Kind: metav1.GroupVersionKind{Kind: kind}}}
				got := RefuseCreation(next, func(featuregate.Feature) bool { return on }).Handle(t.Context(), request)
				if want := on || operation == admissionv1.Update || refusedElsewhere(kind); got.Allowed != want {
					t.Errorf("%s of %s with gates %t: allowed is %t", operation, kind, on, got.Allowed)
				}
				if got.Allowed {
					continue
				}
				for _, part := range []string{"spec: Forbidden: no controller acts on objects of kind " + kind, "--set featureGates=\"", "=true\""} {
					if !strings.Contains(got.Result.Message, part) {
						t.Errorf("%s: %q does not say %q", kind, got.Result.Message, part)
					}
				}
			}
		}
	}
}

// An AdvancedCronJob that pulls images would fail at each run.
func TestAnAdvancedCronJobThatPullsIsRefusedWithoutTheGate(t *testing.T) {
	next := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("next") })
	for name, tc := range map[string]struct {
		object  string
		on      bool
		allowed bool
	}{
		"it pulls":                  {object: `{"spec":{"template":{"imageListPullJobTemplate":{}}}}`},
		"it pulls, with the gate":   {object: `{"spec":{"template":{"imageListPullJobTemplate":{}}}}`, on: true, allowed: true},
		"it starts another job":     {object: `{"spec":{"template":{"jobTemplate":{}}}}`, allowed: true},
		"its kind has to refuse it": {object: `{"spec":[]}`, allowed: true},
	} {
		t.Run(name, func(t *testing.T) {
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Name: "a", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Kind: "AdvancedCronJob"}, Object: runtime.RawExtension{Raw: []byte(tc.object)},
			}}
			got := RefuseCreation(next, func(featuregate.Feature) bool { return tc.on }).Handle(t.Context(), request)
			if got.Allowed != tc.allowed {
				t.Fatalf("allowed is %t", got.Allowed)
			}
			if !got.Allowed && !strings.Contains(got.Result.Message, "spec.template.imageListPullJobTemplate: Forbidden: no controller acts on objects of kind ImageListPullJob") {
				t.Errorf("it says %q", got.Result.Message)
			}
		})
	}
}

// Kinds whose own rules refuse them keep the words that OpenKruise has for it, and say the line as well.
func TestTheLineIsSaidBesideTheWordsOfOpenKruise(t *testing.T) {
	for _, kind := range []string{"PodUnavailableBudget", "WorkloadSpread"} {
		for _, off := range []featuregate.Feature{features.PodWebhook, features.WorkloadSpread} {
			on := func(f featuregate.Feature) bool { return f != off }
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Name: "a", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Kind: kind}}}
			refuses := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
				return admission.Denied("feature-gate is not enabled")
			})
			got := RefuseCreation(refuses, on).Handle(t.Context(), request).Result.Message
			want := "feature-gate is not enabled"
			if why := DescribeMissing(kind, on); why != "" {
				want += "; " + why
			}
			if got != want {
				t.Errorf("%s without %s: %q, want %q", kind, off, got, want)
			}
			if got := RefuseCreation(admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") }), on).Handle(t.Context(), request); !got.Allowed {
				t.Errorf("%s without %s is refused", kind, off)
			}
		}
	}
}
