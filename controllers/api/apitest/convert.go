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
	source, out := copyThroughJSON(t, in), new(H)
	if err := any(source).(conversion.Convertible).ConvertTo(any(out).(conversion.Hub)); err != nil {
		t.Fatalf("converting to the hub: %v", err)
	}
	RequireEqual(t, "conversion changed its source", in, source)
	return out
}

// ConvertFromHub converts a hub to an older version likewise.
func ConvertFromHub[O, H any](t *testing.T, in *H) *O {
	t.Helper()
	source, out := copyThroughJSON(t, in), new(O)
	if err := any(out).(conversion.Convertible).ConvertFrom(any(source).(conversion.Hub)); err != nil {
		t.Fatalf("converting from the hub: %v", err)
	}
	RequireEqual(t, "conversion changed its source", in, source)
	return out
}

// RequireEqual fails the test unless two objects are the same to the API server.
func RequireEqual(t *testing.T, what string, before, after any) {
	t.Helper()
	if diff := cmp.Diff(encodeObject(t, before.(runtime.Object)), encodeObject(t, after.(runtime.Object))); diff != "" {
		t.Fatalf("%s (-before +after):\n%s", what, diff)
	}
}

func copyThroughJSON[T any](t *testing.T, in *T) *T {
	t.Helper()
	object := any(in).(runtime.Object)
	return any(decodeObject(t, encodeObject(t, object), object)).(*T)
}
