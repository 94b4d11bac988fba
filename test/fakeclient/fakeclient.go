// SPDX-License-Identifier: Apache-2.0

// Package fakeclient makes fake clients that are fast.
package fakeclient

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// NewClientBuilder makes a builder of a fake client that knows no managed fields, so that it cannot serve
// server-side apply. Keeping managed fields makes a REST mapper of the whole scheme for each write, which takes
// longer than all the rest of most tests.
func NewClientBuilder(scheme *runtime.Scheme) *fake.ClientBuilder {
	return fake.NewClientBuilder().WithScheme(scheme).
		WithObjectTracker(clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder()))
}

// AddNamespaces returns objects and the namespaces that they are in, as an API server would have them.
func AddNamespaces(objects ...client.Object) []client.Object {
	known := map[string]bool{"": true}
	for _, o := range objects {
		if namespace, ok := o.(*corev1.Namespace); ok {
			known[namespace.Name] = true
		}
	}
	out := objects
	for _, o := range objects {
		if name := o.GetNamespace(); !known[name] {
			known[name] = true
			out = append(out[:len(out):len(out)], &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	return out
}
