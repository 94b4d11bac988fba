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

// objects is how many objects each direction of a round trip tries: $CONVERSION_OBJECTS, or some.
func objects(t *testing.T) int {
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
		out := another(hub).(conversion.Hub)
		if err := in.(conversion.Convertible).ConvertTo(out); err != nil {
			t.Fatalf("converting to the hub: %v", err)
		}
		return out
	}
	back := func(t *testing.T, in runtime.Object) runtime.Object {
		out := another(spoke).(conversion.Convertible)
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
	t.Run("what the hub holds survives the other version", func(t *testing.T) { survives(t, filler, hub, back, there) })
	t.Run("what the other version holds survives the hub", func(t *testing.T) { survives(t, filler, spoke, there, back) })
	t.Run("what was kept of another object changes no field", func(t *testing.T) {
		for range objects(t) {
			older, newer := fill(t, filler, spoke), fill(t, filler, hub)
			unmoved(t, older, conversiondata.NewerKey, back(t, newer), func(in runtime.Object) runtime.Object { return back(t, there(t, in)) })
			unmoved(t, newer, conversiondata.OlderKey, there(t, older), func(in runtime.Object) runtime.Object { return there(t, back(t, in)) })
		}
	})
}

// foreign is a hub of no kind.
type foreign struct{ runtime.Object }

func (foreign) Hub() {}

// unmoved gives an object what was kept of another one. It must count only where it says nothing else than the fields.
func unmoved(t *testing.T, object runtime.Object, key string, other runtime.Object, around func(runtime.Object) runtime.Object) {
	t.Helper()
	kept, ok := other.(metav1.Object).GetAnnotations()[key]
	if !ok {
		return
	}
	before := write(t, object)
	marked := read(t, before, object)
	annotations := maps.Clone(marked.(metav1.Object).GetAnnotations())
	conversiondata.Set(&annotations, key, kept)
	marked.(metav1.Object).SetAnnotations(annotations)
	got := around(marked)
	annotations = got.(metav1.Object).GetAnnotations()
	conversiondata.Unset(&annotations, conversiondata.OlderKey)
	conversiondata.Unset(&annotations, conversiondata.NewerKey)
	got.(metav1.Object).SetAnnotations(annotations)
	if diff := cmp.Diff(before, write(t, got)); diff != "" {
		t.Fatalf("%s=%s changed the object (-before +after):\n%s", key, kept, diff)
	}
}

func survives(t *testing.T, filler *randfill.Filler, kind runtime.Object, there, back func(*testing.T, runtime.Object) runtime.Object) {
	for i := range objects(t) {
		in := fill(t, filler, kind)
		before := write(t, in)
		// Each step is of what the one before it has written, as it is in the webhook.
		middle := there(t, in)
		got := write(t, back(t, read(t, write(t, middle), middle)))
		if diff := cmp.Diff(before, write(t, in)); diff != "" {
			t.Fatalf("object %d: the conversion changed its source (-before +after):\n%s", i, diff)
		}
		if diff := cmp.Diff(before, got); diff != "" {
			t.Fatalf("object %d became another by way of\n%s\n(-before +after):\n%s", i, write(t, middle), diff)
		}
	}
}

// fill leaves out what JSON does not tell apart, as the API server hands over JSON.
func fill(t *testing.T, filler *randfill.Filler, kind runtime.Object) runtime.Object {
	t.Helper()
	filled := another(kind)
	filler.Fill(filled)
	return read(t, write(t, filled), kind)
}

func another(kind runtime.Object) runtime.Object {
	return reflect.New(reflect.TypeOf(kind).Elem()).Interface().(runtime.Object)
}

func write(t *testing.T, object runtime.Object) string {
	t.Helper()
	text, err := json.MarshalIndent(object, "", "  ")
	if err != nil {
		t.Fatalf("writing %T: %v", object, err)
	}
	return string(text)
}

func read(t *testing.T, text string, kind runtime.Object) runtime.Object {
	t.Helper()
	object := another(kind)
	if err := json.Unmarshal([]byte(text), object); err != nil {
		t.Fatalf("reading %T: %v", object, err)
	}
	return object
}
