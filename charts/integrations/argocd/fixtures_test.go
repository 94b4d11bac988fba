// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/regatta-sh/regatta/controllers/api"
	"github.com/regatta-sh/regatta/controllers/kinds"
)

const generation = 3

// with returns a new object that was changed.
func with[T any](newObject func() *T, changes ...func(*T)) *T {
	object := newObject()
	for _, change := range changes {
		change(object)
	}
	return object
}

func newMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: "web", Namespace: "shop", UID: "0b0e1f7c-9d3c-4a57-8e5e-0e8b7f9f2d11", Generation: generation, ResourceVersion: "4711",
		Annotations: map[string]string{"example.com/team": "shop"},
	}
}

// newClusterMeta is of kinds that are in no namespace.
func newClusterMeta() metav1.ObjectMeta {
	meta := newMeta()
	meta.Namespace = ""
	return meta
}

// newTemplate has fields that are empty maps and lists, which Lua does not tell apart.
func newTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "nginx", Image: "nginx:1.27"}},
			Volumes:    []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
}

func newSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// serveObject returns an object as an API server serves it in a version.
func serveObject(t testing.TB, scheme *runtime.Scheme, object client.Object, version string) map[string]any {
	t.Helper()
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		t.Fatal(err)
	}
	var served runtime.Object = object
	if gvk.Version != version {
		gvk.Version = version
		if served, err = scheme.New(gvk); err != nil {
			t.Fatal(err)
		}
		if convertible, ok := served.(conversion.Convertible); ok {
			err = convertible.ConvertFrom(object.DeepCopyObject().(conversion.Hub))
		} else { // both versions have the same fields
			err = decodeStrictly(encodeObject(t, object), served)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fields := encodeObject(t, served)
	fields["apiVersion"], fields["kind"] = gvk.ToAPIVersionAndKind()
	return fields
}

func encodeObject(t testing.TB, object runtime.Object) map[string]any {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	removeNulls(fields)
	return fields
}

func decodeStrictly(fields map[string]any, into runtime.Object) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, into, true)
}

func removeNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if field == nil {
				delete(v, key)
			}
			removeNulls(field)
		}
	case []any:
		for _, item := range v {
			removeNulls(item)
		}
	}
}

// readScripts returns the assembled scripts by kind.
func readScripts(t testing.TB) map[schema.GroupKind]Kind {
	t.Helper()
	all, err := ReadKinds(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	out := map[schema.GroupKind]Kind{}
	for _, kind := range all {
		out[schema.GroupKind{Group: kind.Group, Kind: kind.Name}] = kind
	}
	return out
}

// groupKind is the kind of fields.
func groupKind(fields map[string]any) schema.GroupKind {
	u := unstructured.Unstructured{Object: fields}
	return u.GroupVersionKind().GroupKind()
}

// viewOf is what the command line reads from an object of a kind of package kinds.
func viewOf(t testing.TB, object client.Object) kinds.View {
	t.Helper()
	workload, ok := kinds.FindByObject(object)
	if !ok {
		t.Fatalf("%T is in no table", object)
	}
	return workload.View(object)
}
