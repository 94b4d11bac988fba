// SPDX-License-Identifier: Apache-2.0

// Package fakeclient makes fake clients that are fast.
package fakeclient

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// NewClientBuilder makes a builder of a fake client that knows no managed fields, so that it cannot serve
// server-side apply. Keeping managed fields makes a REST mapper of the whole scheme for each write, which takes
// longer than all the rest of most tests.
func NewClientBuilder(scheme *runtime.Scheme) *fake.ClientBuilder {
	return fake.NewClientBuilder().WithScheme(scheme).
		WithObjectTracker(clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder()))
}
