// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/randfill"

	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
	"github.com/regatta-sh/regatta/test/proptest"
)

// objectCount is how many objects each direction of a round trip tries: $CONVERSION_OBJECTS, or some.
func objectCount(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CONVERSION_OBJECTS")
	if text == "" {
		return proptest.Often(300)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("CONVERSION_OBJECTS is %q, want a number of objects", text)
	}
	return n
}

// RoundTrip fills objects of a version and of its hub, and has each come back from the other as it was. The two objects
// only say which kind it is.
func RoundTrip(t *testing.T, filler *randfill.Filler, spoke conversion.Convertible, hub conversion.Hub) {
	t.Helper()
	there := func(t *testing.T, in runtime.Object) runtime.Object {
		out := newEmptyObject(hub).(conversion.Hub)
		if err := in.(conversion.Convertible).ConvertTo(out); err != nil {
			t.Fatalf("converting to the hub: %v", err)
		}
		return out
	}
	back := func(t *testing.T, in runtime.Object) runtime.Object {
		out := newEmptyObject(spoke).(conversion.Convertible)
		if err := out.ConvertFrom(in.(conversion.Hub)); err != nil {
			t.Fatalf("converting from the hub: %v", err)
		}
		return out
	}
	t.Run("an object of another kind is refused", func(t *testing.T) {
		if spoke.ConvertTo(foreign{hub}) == nil || spoke.ConvertFrom(foreign{hub}) == nil {
			t.Error("it was converted")
		}
	})
	t.Run("what the hub holds survives the other version", func(t *testing.T) { requireRoundTrip(t, filler, hub, back, there) })
	t.Run("what the other version holds survives the hub", func(t *testing.T) { requireRoundTrip(t, filler, spoke, there, back) })
	t.Run("what was kept of another object changes no field", func(t *testing.T) {
		for range objectCount(t) {
			older, newer := fillObject(t, filler, spoke), fillObject(t, filler, hub)
			requireStaleDataIgnored(t, older, conversiondata.NewerKey, back(t, newer), func(in runtime.Object) runtime.Object { return back(t, there(t, in)) })
			requireStaleDataIgnored(t, newer, conversiondata.OlderKey, there(t, older), func(in runtime.Object) runtime.Object { return there(t, back(t, in)) })
		}
	})
}

// foreign is a hub of no kind.
type foreign struct{ runtime.Object }

func (foreign) Hub() {}

// requireStaleDataIgnored gives an object what was kept of another one. It must count only where it says nothing else than the fields.
func requireStaleDataIgnored(t *testing.T, object runtime.Object, key string, other runtime.Object, around func(runtime.Object) runtime.Object) {
	t.Helper()
	kept, ok := other.(metav1.Object).GetAnnotations()[key]
	if !ok {
		return
	}
	before := encodeObject(t, object)
	marked := decodeObject(t, before, object)
	annotations := maps.Clone(marked.(metav1.Object).GetAnnotations())
	conversiondata.SetMetadata(&annotations, key, kept)
	marked.(metav1.Object).SetAnnotations(annotations)
	got := around(marked)
	annotations = got.(metav1.Object).GetAnnotations()
	conversiondata.RemoveMetadata(&annotations, conversiondata.OlderKey)
	conversiondata.RemoveMetadata(&annotations, conversiondata.NewerKey)
	got.(metav1.Object).SetAnnotations(annotations)
	if diff := cmp.Diff(before, encodeObject(t, got)); diff != "" {
		t.Fatalf("%s=%s changed the object (-before +after):\n%s", key, kept, diff)
	}
}

func requireRoundTrip(t *testing.T, filler *randfill.Filler, kind runtime.Object, there, back func(*testing.T, runtime.Object) runtime.Object) {
	for i := range objectCount(t) {
		in := fillObject(t, filler, kind)
		before := encodeObject(t, in)
		// Each step is of what the one before it has written, as it is in the webhook.
		middle := there(t, in)
		got := encodeObject(t, back(t, decodeObject(t, encodeObject(t, middle), middle)))
		if diff := cmp.Diff(before, encodeObject(t, in)); diff != "" {
			t.Fatalf("object %d: the conversion changed its source (-before +after):\n%s", i, diff)
		}
		if diff := cmp.Diff(before, got); diff != "" {
			t.Fatalf("object %d became another by way of\n%s\n(-before +after):\n%s", i, encodeObject(t, middle), diff)
		}
	}
}

// fillObject leaves out what JSON does not tell apart, as the API server hands over JSON.
func fillObject(t *testing.T, filler *randfill.Filler, kind runtime.Object) runtime.Object {
	t.Helper()
	filled := newEmptyObject(kind)
	filler.Fill(filled)
	return decodeObject(t, encodeObject(t, filled), kind)
}

func newEmptyObject(kind runtime.Object) runtime.Object {
	return reflect.New(reflect.TypeOf(kind).Elem()).Interface().(runtime.Object)
}

func encodeObject(t *testing.T, object runtime.Object) string {
	t.Helper()
	text, err := json.MarshalIndent(object, "", "  ")
	if err != nil {
		t.Fatalf("writing %T: %v", object, err)
	}
	return string(text)
}

func decodeObject(t *testing.T, text string, kind runtime.Object) runtime.Object {
	t.Helper()
	object := newEmptyObject(kind)
	if err := json.Unmarshal([]byte(text), object); err != nil {
		t.Fatalf("reading %T: %v", object, err)
	}
	return object
}
