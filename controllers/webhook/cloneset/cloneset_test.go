// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
)

// Defaulter and Validator are the webhooks, by what they need of the options.
type (
	Defaulter struct {
		Templates     podtemplate.Settings
		KeepTemplates bool
	}
	Validator struct {
		Pods client.Reader
	}
)

func (d *Defaulter) Handle(ctx context.Context, r admission.Request) admission.Response {
	return New(Options{Templates: d.Templates, KeepTemplates: d.KeepTemplates}).MutatingHandler().Handle(ctx, r)
}

func (v *Validator) Handle(ctx context.Context, r admission.Request) admission.Response {
	return New(Options{Pods: v.Pods}).ValidatingHandler().Handle(ctx, r)
}

const (
	alpha, beta = "v1alpha1", "v1beta1"

	base = `{metadata: {name: web, namespace: ns, uid: u1}, spec: {
	  selector: {matchLabels: {app: web}},
	  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "nginx:1"}]}}}}`
)

// versions are the two that are served.
func versions() []string { return []string{alpha, beta} }

// places fills in where fields stand in a version: ROLLING for the rolling update, POLICY for the pod update policy.
func places(version, text string) string {
	rolling, policy := "spec.updateStrategy.rollingUpdate", "spec.updateStrategy.rollingUpdate.podUpdatePolicy"
	if version == alpha {
		rolling, policy = "spec.updateStrategy", "spec.updateStrategy.type"
	}
	return strings.NewReplacer("ROLLING", rolling, "POLICY", policy).Replace(text)
}

// typed is the base with changes, in the version. A change under ROLLING stands where the version has it.
func typed(t testing.TB, version string, changes ...string) []byte {
	t.Helper()
	raw := asJSON(t, base)
	for _, change := range append(changes, "{apiVersion: apps.kruise.io/"+version+", kind: CloneSet}") {
		rolling := map[string]any{}
		if err := yaml.Unmarshal([]byte(change), &rolling); err != nil {
			t.Fatalf("reading %s: %v", change, err)
		}
		patch, err := json.Marshal(placed(version, rolling))
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = jsonpatch.MergePatch(raw, patch); err != nil {
			t.Fatalf("merging %s: %v", change, err)
		}
	}
	return raw
}

// placed moves what is under ROLLING to its place, POLICY into it, and TYPE, which only v1beta1 has, beside it.
func placed(version string, change map[string]any) map[string]any {
	rolling, ok := change["ROLLING"].(map[string]any)
	if !ok {
		return change
	}
	delete(change, "ROLLING")
	policy, hasPolicy := rolling["POLICY"]
	delete(rolling, "POLICY")
	strategy := map[string]any{"rollingUpdate": rolling}
	if version == alpha {
		strategy = rolling
		if hasPolicy {
			strategy["type"] = policy
		}
	} else if hasPolicy {
		rolling["podUpdatePolicy"] = policy
	}
	if kind, ok := change["TYPE"]; ok {
		strategy["type"] = kind
		delete(change, "TYPE")
	}
	spec, ok := change["spec"].(map[string]any)
	if !ok {
		spec = map[string]any{}
	}
	spec["updateStrategy"] = strategy
	change["spec"] = spec
	return change
}

func asJSON(t testing.TB, text string) []byte {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("reading %s: %v", text, err)
	}
	return raw
}

func request(version string, operation admissionv1.Operation, object, old []byte) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Name: "web", Namespace: "ns", Operation: operation,
		Kind:   metav1.GroupVersionKind{Group: "apps.kruise.io", Version: version, Kind: "CloneSet"},
		Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old},
	}}
}

// defaulted is what the API server would have after the mutating webhook.
func defaulted(t testing.TB, d *Defaulter, version string, object, old []byte) []byte {
	t.Helper()
	operation := admissionv1.Create
	if old != nil {
		operation = admissionv1.Update
	}
	response := d.Handle(context.Background(), request(version, operation, object, old))
	if err := response.Complete(admission.Request{}); err != nil || !response.Allowed {
		t.Fatalf("filling in defaults: %v, %v", err, response.Result)
	}
	if response.Patch == nil {
		return object
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		t.Fatalf("reading %s: %v", response.Patch, err)
	}
	object, err = patch.Apply(object)
	if err != nil {
		t.Fatalf("applying %s: %v", response.Patch, err)
	}
	return object
}

// pods answers for the pods of a namespace.
type pods struct{ client.Reader }

func (pods) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	pod := object.(*corev1.Pod)
	pod.OwnerReferences = []metav1.OwnerReference{{UID: "u1", Controller: ptr.To(true)}}
	switch key.Name {
	case "web-mine", "web-other":
	case "web-going":
		pod.DeletionTimestamp = &metav1.Time{}
	case "web-foreign":
		pod.OwnerReferences[0].UID = "u2"
	case "web-broken":
		return context.DeadlineExceeded
	default:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, key.Name)
	}
	return nil
}

// findingsOf are the errors, each as it is shown, and the warnings.
func findingsOf(t testing.TB, v *Validator, version string, object, old []byte) (errs, warnings []string) {
	t.Helper()
	operation := admissionv1.Create
	if old != nil {
		operation = admissionv1.Update
	}
	response := v.Handle(context.Background(), request(version, operation, object, old))
	if response.Allowed {
		return nil, response.Warnings
	}
	if response.Result.Details == nil {
		t.Fatalf("refused with %v", response.Result)
	}
	for _, cause := range response.Result.Details.Causes {
		errs = append(errs, cause.Field+": "+cause.Message)
	}
	return errs, response.Warnings
}
