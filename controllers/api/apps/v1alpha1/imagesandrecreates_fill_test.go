package v1alpha1

import (
	"encoding/json"
	"maps"
	"math/rand"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/randfill"

	"github.com/regatta-sh/regatta/controllers/api/marks"
)

const filledObjects = 300

// newRecreateFiller fills objects whose annotations are some of these, among others.
func newRecreateFiller(seed int64, texts map[string][]string, more ...any) *randfill.Filler {
	filler := randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(14)
	return filler.Funcs(append([]any{
		func(*metav1.TypeMeta, randfill.Continue) {},
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			m.Name, m.Namespace, m.UID = c.String(0), c.String(0), types.UID(c.String(0))
			m.Generation = c.Int63()
			c.Fill(&m.Labels)
			c.Fill(&m.Annotations)
			writeTexts(c.Rand, &m.Annotations, texts)
		},
		func(at *metav1.Time, c randfill.Continue) { *at = metav1.Unix(c.Int63n(4e9), 0) },
		func(v *intstr.IntOrString, c randfill.Continue) {
			*v = intstr.FromInt32(c.Int31())
			if c.Bool() {
				*v = intstr.FromString(c.String(0))
			}
		},
	}, more...)...)
}

// writeTexts sets or removes each annotation, in half of the cases.
func writeTexts(r *rand.Rand, annotations *map[string]string, texts map[string][]string) {
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		choice := texts[key]
		switch i := r.Intn(2 * len(choice)); {
		case i == 0:
			marks.Unset(annotations, key)
		case i <= len(choice):
			marks.Set(annotations, key, choice[i-1])
		}
	}
}

func asText(t *testing.T, object any) string {
	t.Helper()
	text, err := json.MarshalIndent(object, "", " ")
	if err != nil {
		t.Fatalf("writing the object: %v", err)
	}
	return string(text)
}

// sent is the object as it comes out of the API server.
func sent[T any](t *testing.T, in *T) *T {
	t.Helper()
	out := new(T)
	if err := json.Unmarshal([]byte(asText(t, in)), out); err != nil {
		t.Fatalf("reading the object: %v", err)
	}
	return out
}

// hubOf and oldOf also find out whether a conversion changes its source.
func hubOf[H, O any](t *testing.T, in *O) *H {
	t.Helper()
	source, out := sent(t, in), new(H)
	if err := any(source).(conversion.Convertible).ConvertTo(any(out).(conversion.Hub)); err != nil {
		t.Fatalf("converting to the hub: %v", err)
	}
	same(t, "conversion changed its source", in, source)
	return out
}

func oldOf[O, H any](t *testing.T, in *H) *O {
	t.Helper()
	source, out := sent(t, in), new(O)
	if err := any(out).(conversion.Convertible).ConvertFrom(any(source).(conversion.Hub)); err != nil {
		t.Fatalf("converting from the hub: %v", err)
	}
	same(t, "conversion changed its source", in, source)
	return out
}

func same(t *testing.T, what string, before, after any) {
	t.Helper()
	if diff := cmp.Diff(asText(t, before), asText(t, after)); diff != "" {
		t.Fatalf("%s (-before +after):\n%s", what, diff)
	}
}
