// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

// Hub converts an object to the hub, as it comes from the API server, and finds out whether that changes it.
func Hub[H, O any](t *testing.T, in *O) *H {
	t.Helper()
	source, out := sent(t, in), new(H)
	if err := any(source).(conversion.Convertible).ConvertTo(any(out).(conversion.Hub)); err != nil {
		t.Fatalf("converting to the hub: %v", err)
	}
	Same(t, "conversion changed its source", in, source)
	return out
}

// Older converts a hub to an older version likewise.
func Older[O, H any](t *testing.T, in *H) *O {
	t.Helper()
	source, out := sent(t, in), new(O)
	if err := any(out).(conversion.Convertible).ConvertFrom(any(source).(conversion.Hub)); err != nil {
		t.Fatalf("converting from the hub: %v", err)
	}
	Same(t, "conversion changed its source", in, source)
	return out
}

// Same fails the test unless two objects are the same to the API server.
func Same(t *testing.T, what string, before, after any) {
	t.Helper()
	if diff := cmp.Diff(write(t, before.(runtime.Object)), write(t, after.(runtime.Object))); diff != "" {
		t.Fatalf("%s (-before +after):\n%s", what, diff)
	}
}

func sent[T any](t *testing.T, in *T) *T {
	t.Helper()
	object := any(in).(runtime.Object)
	return any(read(t, write(t, object), object)).(*T)
}
