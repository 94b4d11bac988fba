// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/test/install"
)

// The release of Kubernetes to render for. Helm has one of its own only if its
// build says so.
const kubeVersion = "1.36.0"

// helm runs Helm with this chart.
func helm(t *testing.T, command string, args ...string) (string, error) {
	t.Helper()
	if command == "template" {
		return renderTemplates(t, args)
	}
	return install.Helm(t, "", command, args...)
}

// A release is what the chart renders, decoded by the types of the API: a field
// that does not exist fails the test.
type release []client.Object

// render renders the chart with some values.
func render(t *testing.T, args ...string) release {
	t.Helper()
	output, err := helm(t, "template", append([]string{"kruise", ".", "--kube-version", kubeVersion}, args...)...)
	if err != nil {
		t.Fatalf("helm template %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	var objects release
	for document := range strings.SplitSeq(output, "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		object, err := decode(document)
		if err != nil {
			t.Fatalf("decoding: %v\n%s", err, document)
		}
		objects = append(objects, object)
	}
	return objects
}

// decoder is made once: it takes longer than what it decodes.
var decoder = sync.OnceValues(func() (runtime.Decoder, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, addCertManager} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	// Their types are of modules that are for nothing else.
	for _, kind := range []schema.GroupVersionKind{
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
		{Group: "security.openshift.io", Version: "v1", Kind: "SecurityContextConstraints"},
		{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"},
		{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"},
		{Group: "monitoring.coreos.com", Version: "v1", Kind: "PrometheusRule"},
	} {
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(), nil
})

// decoded has the objects of documents: the CRDs are the same in every release.
var decoded sync.Map

func decode(document string) (client.Object, error) {
	known, ok := decoded.Load(document)
	if !ok {
		d, err := decoder()
		if err != nil {
			return nil, err
		}
		if known, _, err = d.Decode([]byte(document), nil, nil); err != nil {
			return nil, err
		}
		decoded.Store(document, known)
	}
	object, ok := known.(runtime.Object).DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", known)
	}
	return object, nil
}

// has reports whether there is an object of a type and a name.
func has[T client.Object](r release, name string) bool {
	for _, object := range r {
		if typed, ok := object.(T); ok && typed.GetName() == name {
			return true
		}
	}
	return false
}

// get returns the object of a type and a name.
func get[T client.Object](t *testing.T, r release, name string) T {
	t.Helper()
	var none T
	for _, object := range r {
		if typed, ok := object.(T); ok && typed.GetName() == name {
			return typed
		}
	}
	t.Fatalf("no %T %s", none, name)
	return none
}

func all[T client.Object](r release) []T {
	var found []T
	for _, object := range r {
		if typed, ok := object.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

func deployment(t *testing.T, r release) *appsv1.Deployment {
	t.Helper()
	return get[*appsv1.Deployment](t, r, "kruise-controller-manager")
}

func container(t *testing.T, r release) corev1.Container {
	t.Helper()
	return deployment(t, r).Spec.Template.Spec.Containers[0]
}

func mutating(t *testing.T, r release) *admissionv1.MutatingWebhookConfiguration {
	t.Helper()
	return get[*admissionv1.MutatingWebhookConfiguration](t, r, "kruise-mutating-webhook-configuration")
}

func validating(t *testing.T, r release) *admissionv1.ValidatingWebhookConfiguration {
	t.Helper()
	return get[*admissionv1.ValidatingWebhookConfiguration](t, r, "kruise-validating-webhook-configuration")
}

func crd(t *testing.T, r release, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return get[*apiextensionsv1.CustomResourceDefinition](t, r, name)
}
